package upstream

import (
	"context"
	"io"

	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/upstream/spool"
)

// window is a reader that pays for the largest element of a document, which the decoder keeps as a whole in a buffer that
// grows by doubling.
type window struct {
	ctx              context.Context //nolint:containedctx // an io.Reader has no other way to stop waiting
	body             io.Reader
	grant            *spool.Grant
	limit            int64 // of the bytes that are read; 0 for none
	total            int64
	since            int64 // bytes that were read since the last element ended
	paid             int64
	names, paidNames int64
}

const (
	// windowBytes is what every window takes, and by how much it grows.
	windowBytes = 64 << 10
	// elementCopies is how many times its bytes an element takes: in a buffer that grows by doubling, with what the check for members
	// that are there twice keeps of their names.
	elementCopies = 4
	// nameCost is what the decoder keeps of the name of a member beside its bytes, until the document ends.
	nameCost = 64
)

// payName pays for what the decoder keeps of the name of a member of the document.
func (w *window) payName(name string) error {
	if w.names += nameCost + 2*int64(len(name)); w.names <= w.paidNames {
		return nil
	}
	step := max(w.names-w.paidNames, windowBytes)
	if err := w.grant.Grow(w.ctx, step); err != nil {
		return err
	}
	w.paidNames += step
	return nil
}

// release returns what was paid for the window.
func (w *window) release() {
	w.grant.Shrink(w.paid + w.paidNames)
	w.paid, w.paidNames = 0, 0
}

// Read implements io.Reader.
func (w *window) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	if err != nil && err != io.EOF {
		err = &bodyError{err}
	}
	w.since += int64(n)
	if w.total += int64(n); w.limit > 0 && w.total > w.limit {
		return 0, fair.ErrTooLarge
	}
	if need := elementCopies * w.since; need > w.paid {
		step := max(need-w.paid, windowBytes)
		if err := w.grant.Grow(w.ctx, step); err != nil {
			return 0, err
		}
		w.paid += step
	}
	return n, err
}

// next begins another element.
func (w *window) next() { w.since = 0 }

// bodyError is an error of reading an answer, not of what is in it.
type bodyError struct{ error }

func (e *bodyError) Unwrap() error { return e.error }
