package jsonstream

import (
	"cmp"
	"errors"
	"fmt"
	"io"
)

const (
	// ManagedAnnotation is the annotation that Spinnaker writes on every object that
	// it deploys.
	ManagedAnnotation = "moniker.spinnaker.io/application"
	// endOfInitialEvents is the annotation of the bookmark that ends a streamed
	// snapshot.
	endOfInitialEvents = "k8s.io/initial-events-end"
)

// Frame is one message of a watch.
type Frame struct {
	Type string // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
	// Object lies in the buffer of the Splitter and is valid until its next call.
	Object []byte
}

// Frame reads the next message of a watch. The error is io.EOF if the stream ends
// between two messages, as it does when the API server ends a watch, and ErrTooLarge
// if the message was skipped.
func (s *Splitter) Frame() (Frame, error) {
	s.discard()
	if _, err := s.peek(); err != nil {
		return Frame{}, err
	}
	s.discard()
	var kind, object extent
	s.overflowed = false
	err := s.object(func(key string) (err error) {
		switch key {
		case "type":
			kind, err = s.value()
		case "object":
			object, err = s.value()
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return Frame{}, err
	}
	if s.overflowed {
		return Frame{}, ErrTooLarge
	}
	return s.newFrame(kind, object)
}

func (s *Splitter) newFrame(kind, object extent) (Frame, error) {
	k, o := s.bytes(kind), s.bytes(object)
	if len(k) < 2 || len(o) == 0 || o[0] != '{' {
		return Frame{}, fmt.Errorf("%w: a watch event without type or object", ErrMalformed)
	}
	return Frame{Type: string(k[1 : len(k)-1]), Object: o}, nil
}

// ErrNoVersion reports that a list has no resourceVersion, so that no watch can
// continue from it.
var ErrNoVersion = fmt.Errorf("%w: a list without a resourceVersion", ErrMalformed)

// ListMeta is the metadata of a list.
type ListMeta struct {
	Kind     string
	Version  string // the resourceVersion
	Continue string // the token of the next page; empty on the last one
}

// List reads one list and calls item for each element. Members may come in any
// order: built-in kinds have their items last, custom resources first. An element
// lies in the buffer and is valid during the call. It is nil if it was too large.
//
// TypeMeta is written in front of elements without kind and apiVersion, because lists
// of built-in kinds leave these out. It has the form `{"kind":…,"apiVersion":…,`.
func (s *Splitter) List(typeMeta []byte, item func(raw []byte) error) (ListMeta, error) {
	var p ListMeta
	hasItems := false
	err := s.object(func(key string) error {
		s.discard()
		switch key {
		case "kind":
			b, err := s.text()
			p.Kind = string(b)
			return err
		case "metadata":
			return s.listMeta(&p)
		case "items":
			hasItems = true
			return s.array(func() error { return s.item(typeMeta, item) })
		}
		return s.skip()
	})
	switch {
	case err != nil:
	case !hasItems: // another document, which must not pass for an empty list
		err = fmt.Errorf("%w: a list without items: %s", ErrMalformed, cmp.Or(p.Kind, "no kind"))
	case p.Version == "":
		err = fmt.Errorf("%w: %s", ErrNoVersion, cmp.Or(p.Kind, "no kind"))
	}
	return p, err
}

func (s *Splitter) listMeta(p *ListMeta) error {
	return s.object(func(key string) error {
		s.discard()
		switch key {
		case "resourceVersion":
			b, err := s.text()
			p.Version = string(b)
			return err
		case "continue":
			b, err := s.text()
			p.Continue = string(b)
			return err
		}
		return s.skip()
	})
}

// item reads one element of a list and passes it to the item function.
func (s *Splitter) item(typeMeta []byte, item func(raw []byte) error) error {
	if _, err := s.peek(); err != nil {
		return unexpectedEOF(err)
	}
	s.discard()
	s.overflowed = false
	e, err := s.value()
	if err != nil {
		return err
	}
	if s.overflowed {
		s.overflowed = false
		return item(nil)
	}
	raw := s.bytes(e)
	if raw[0] != '{' {
		return fmt.Errorf("%w: found %s, want an object", ErrMalformed, s.excerpt(raw))
	}
	if len(typeMeta) > 0 && !hasTypeMeta(raw) {
		raw = s.prependTypeMeta(typeMeta)
	}
	err = item(raw)
	s.discard()
	return err
}

// prependTypeMeta writes typeMeta in front of the object that is kept, over bytes
// that are no longer needed. Watches send kind and apiVersion with every object, and
// readers should not have to distinguish lists from watches.
func (s *Splitter) prependTypeMeta(typeMeta []byte) []byte {
	from := s.start + 1 - len(typeMeta)
	copy(s.buf[from:], typeMeta)
	raw := s.buf[from:s.pos]
	if isEmptyObject(s.buf[s.start+1 : s.pos]) {
		return []byte(string(typeMeta[:len(typeMeta)-1]) + "}")
	}
	return raw
}

func isEmptyObject(rest []byte) bool {
	for _, c := range rest {
		if c == '}' {
			return true
		}
		if c > ' ' {
			return false
		}
	}
	return false
}

// unexpectedEOF turns io.EOF into io.ErrUnexpectedEOF.
func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// FrameType returns the type of a watch event, given its beginning, or "".
func FrameType(beginning []byte) (name string) {
	s := splitBytes(beginning)
	_ = s.object(func(key string) error {
		if key != "type" {
			return s.skip()
		}
		b, err := s.text()
		name = string(b)
		return errors.Join(err, errStopWalk)
	})
	return name
}

// FrameObject returns the beginning of the object in a watch event, given the event's
// beginning. If beginning is not a watch event, it returns beginning.
func FrameObject(beginning []byte) []byte {
	s := splitBytes(beginning)
	_ = s.object(func(key string) error {
		if key == "object" {
			beginning = s.buf[s.pos:]
			return errStopWalk
		}
		return s.skip()
	})
	return beginning
}
