package jsonstream

import "sync"

// The sizes of read buffers. An idle stream holds no buffer. A stream that is read
// starts with the smallest one and doubles it. Buffers above the largest pooled size
// are left to the garbage collector, because one large object must not raise the
// memory of all accounts for good.
const (
	minBuffer   = 8 << 10
	pooledSizes = 8 // 8 KiB to 1 MiB
)

// BufferPool lends read buffers, one pool per power of two. The zero value is ready
// to use. It is safe for concurrent use.
type BufferPool struct {
	pools [pooledSizes]sync.Pool
}

// get returns a buffer of at least n bytes. Its content is arbitrary.
func (p *BufferPool) get(n int) []byte {
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

// put takes back a buffer that get returned.
func (p *BufferPool) put(b []byte) {
	for size, class := minBuffer, 0; class < pooledSizes; size, class = size*2, class+1 {
		if cap(b) == size {
			b = b[:size]
			p.pools[class].Put(&b)
			return
		}
	}
}
