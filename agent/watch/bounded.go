package watch

import (
	"fmt"
	"io"
)

// bounded reads up to a number of bytes, and fails where there are more, so that
// what is kept of a document has a bound.
type bounded struct {
	src  io.Reader
	left int
	most int
}

func atMost(src io.Reader, most int) *bounded { return &bounded{src: src, left: most, most: most} }

// Read fails once all that may be read was read and something is left.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.src.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("%w: a document of more than %d MiB", errGarbage, b.most>>20)
	}
	return n, err
}
