package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/upstream/spool"
)

// scan calls do with each element of a JSON array, or with each member of an object, while the document is being read, and
// checks the whole document: that it is UTF-8, and that no object has a member twice. Readers take the first or the last of
// two members with one name: one of them could be an account of agents. The bytes of value are valid during the call.
func scan(document io.Reader, begin jsontext.Kind, do func(name string, value []byte) error) error {
	d := jsontext.NewDecoder(document)
	return scanValues(d, begin, func() ([]byte, error) { return d.ReadValue() }, do)
}

// scanValues calls do with the elements or members that a decoder reads by next.
func scanValues(d *jsontext.Decoder, begin jsontext.Kind, next func() ([]byte, error), do func(name string, value []byte) error) error {
	if err := openJSON(d, begin); err != nil {
		return err
	}
	for {
		var name string
		switch kind := d.PeekKind(); {
		case kind == ']' || kind == '}':
			return closeJSON(d)
		case begin == '{':
			token, err := d.ReadToken()
			if err != nil {
				return fmt.Errorf("read the name of a member: %w", err)
			}
			name = token.String()
		}
		value, err := next()
		if err != nil {
			return fmt.Errorf("read a value: %w", err)
		}
		if err := do(name, value); err != nil {
			return err
		}
	}
}

// openJSON reads the first token of a document, which must be begin.
func openJSON(d *jsontext.Decoder, begin jsontext.Kind) error {
	token, err := d.ReadToken()
	switch {
	case err != nil:
		return fmt.Errorf("read a JSON document: %w", err)
	case token.Kind() != begin:
		return fmt.Errorf("got JSON that begins with %v, want %v", token.Kind(), begin)
	}
	return nil
}

// closeJSON reads the last token of a document, and checks that nothing follows.
func closeJSON(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return fmt.Errorf("read the end of a JSON document: %w", err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		if err != nil {
			return fmt.Errorf("read the end of a JSON document: %w", err)
		}
		return errors.New("got more after the end of a JSON document")
	}
	return nil
}

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

// Unwrap returns the error of the reader.
func (e *bodyError) Unwrap() error { return e.error }
