package kube

import (
	"fmt"
	"io"

	"github.com/vedette-io/vedette/agent/jsonstream"
)

// limitedReader reads up to a number of bytes and fails if there are more. Unlike
// io.LimitReader, it does not pass off the beginning of a document as the whole.
type limitedReader struct {
	src       io.Reader
	remaining int
	limit     int
}

func limitReader(src io.Reader, limit int) *limitedReader {
	return &limitedReader{src: src, remaining: limit, limit: limit}
}

// Read fails once the limit is reached and data is left.
func (b *limitedReader) Read(p []byte) (int, error) {
	n, err := b.src.Read(p[:min(len(p), b.remaining+1)])
	b.remaining -= n
	if b.remaining < 0 {
		return 0, fmt.Errorf("%w: a document of more than %d MiB", jsonstream.ErrMalformed, b.limit>>20)
	}
	return n, err
}
