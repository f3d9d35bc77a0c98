package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vedette-io/vedette/agent/jsonstream"
	"github.com/vedette-io/vedette/internal/exactjson"
)

const (
	// maxDocumentBytes bounds a document that is decoded as a whole.
	maxDocumentBytes = maxReadBuffer
	// maxDecodedBytes bounds what a document, or a part of one, becomes.
	maxDecodedBytes = 16 << 20
	// documentTimeout is how long an API server may take to send a document whose buffer takes memory that accounts
	// share.
	documentTimeout = time.Minute
	// freeDocumentBuffer is the largest buffer of a document, in bytes, that does not count in Options.ReadMemory: an
	// account reads one document at a time, and must be able to while its feeds use all of their memory.
	freeDocumentBuffer = 32 << 10
)

// ReadPermit returns the permit for the read buffer of a response's body. It ends the response if a large object takes longer
// than timeout.
func (c *Cluster) ReadPermit(ctx context.Context, body io.Reader, timeout time.Duration) *ReadPermit {
	return c.opts.ReadMemory.Permit(ctx, ReadPermitConfig{Account: c.opts.Account, Timeout: timeout, OnTimeout: func() {
		if b, ok := body.(*timeoutBody); ok {
			b.cancel(&StallError{Phase: "a large object did not end", Limit: timeout, LargeObject: true})
		}
	}})
}

// smallDocument is the buffer that most documents fit into.
type smallDocument [4 << 10]byte

// smallDocuments holds buffers that are all zero. Each probe of an account needs one.
var smallDocuments = sync.Pool{New: func() any { return new(smallDocument) }}

// readDocument reads and decodes a whole document.
func (c *Cluster) readDocument(ctx context.Context, body io.Reader, into any) error {
	permit := c.ReadPermit(ctx, body, documentTimeout)
	defer permit.Release(0)
	src := limitReader(body, maxDocumentBytes-1)
	small := smallDocuments.Get().(*smallDocument)
	defer func() {
		clear(small[:])
		smallDocuments.Put(small)
	}()
	buf := small[:0]
	for {
		if cap(buf) > freeDocumentBuffer {
			if err := permit.Acquire(cap(buf)); err != nil { //nolint:contextcheck // the permit has it
				return err
			}
		}
		stop := permit.StartWait()
		n, err := io.ReadFull(src, buf[len(buf):cap(buf)])
		stop()
		switch buf = buf[:len(buf)+n]; {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return decodeDocument(buf, into)
		case err != nil:
			return err //nolint:wrapcheck // the caller names the document
		}
		buf = append(make([]byte, 0, 2*cap(buf)), buf...)
	}
}

func decodeDocument(body []byte, into any) error {
	if err := exactjson.Unmarshal(body, into, exactjson.Limits{Bytes: maxDecodedBytes}); err != nil {
		return fmt.Errorf("%w: %s", jsonstream.ErrMalformed, quoteBody(body))
	}
	return nil
}
