package watch

import "sync"

// The sizes of read buffers. An idle feed holds none; one that reads starts
// with the smallest and doubles. Buffers above the largest pooled size are left
// to the garbage collector, because one big object must not raise the memory of
// all accounts for good.
const (
	minBuffer   = 8 << 10
	pooledSizes = 8 // 8 KiB to 1 MiB
)

// bufferPool lends read buffers, one pool per power of two.
type bufferPool struct {
	pools [pooledSizes]sync.Pool
}

// get returns a buffer of at least n bytes, its content arbitrary.
func (p *bufferPool) get(n int) []byte {
	size, class := minBuffer, 0
	for size < n {
		size, class = size*2, class+1
	}
	if class < pooledSizes {
		if b, ok := p.pools[class].Get().(*[]byte); ok {
			return *b
		}
	}
	return make([]byte, size)
}

// put takes back what get lent.
func (p *bufferPool) put(b []byte) {
	for size, class := minBuffer, 0; class < pooledSizes; size, class = size*2, class+1 {
		if cap(b) == size {
			b = b[:size]
			p.pools[class].Put(&b)
			return
		}
	}
}
