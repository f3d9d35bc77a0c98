package watch

import (
	"fmt"
	"io"

	"github.com/vedette-io/vedette"
)

// The annotations that matter here.
const (
	endOfInitialEvents = "k8s.io/initial-events-end"
	managedAnnotation  = "moniker.spinnaker.io/application"
)

// frame is one message of a watch. Object lies in the splitter's buffer.
type frame struct {
	Type   string // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
	Object []byte
}

// frame reads the next message of a watch. The error is io.EOF where the stream
// ends between two messages, as it does when the API server ends a watch, and
// errTooBig where the message was passed over.
func (s *splitter) frame() (frame, error) {
	s.discard()
	if _, err := s.peek(); err != nil {
		return frame{}, err
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
		return frame{}, err
	}
	if s.overflowed {
		return frame{}, errTooBig
	}
	return s.newFrame(kind, object)
}

func (s *splitter) newFrame(kind, object extent) (frame, error) {
	k, o := s.bytes(kind), s.bytes(object)
	if len(k) < 2 || len(o) == 0 || o[0] != '{' {
		return frame{}, fmt.Errorf("%w: a watch event without type and object", errMalformed)
	}
	return frame{Type: string(k[1 : len(k)-1]), Object: o}, nil
}

// errNoVersion says that a list could not be watched on from.
var errNoVersion = fmt.Errorf("%w: a list without a resourceVersion", errMalformed)

// page is what a list says of itself.
type page struct {
	Kind     string
	Version  vedette.Mark
	Continue string
}

// list reads one list, in whatever order its members come: built-in kinds have
// their items last, custom resources first. Each item is handed over in the
// buffer. An item that was too big is handed over as nil.
func (s *splitter) list(typeMeta []byte, item func(raw []byte) error) (page, error) {
	var p page
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
			return s.array(func() error { return s.item(typeMeta, item) })
		}
		return s.skip()
	})
	if err == nil && p.Version == "" {
		err = fmt.Errorf("%w: %s", errNoVersion, firstOf(p.Kind, "no kind"))
	}
	return p, err
}

func (s *splitter) listMeta(p *page) error {
	return s.object(func(key string) error {
		s.discard()
		switch key {
		case "resourceVersion":
			b, err := s.text()
			p.Version = vedette.Mark(b)
			return err
		case "continue":
			b, err := s.text()
			p.Continue = string(b)
			return err
		}
		return s.skip()
	})
}

// item reads one element of a list and hands it over.
func (s *splitter) item(typeMeta []byte, item func(raw []byte) error) error {
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
		return fmt.Errorf("%w: %s where an object was due", errMalformed, s.excerpt(raw))
	}
	if len(typeMeta) > 0 && !hasTypeMeta(raw) {
		raw = s.prependTypeMeta(typeMeta)
	}
	err = item(raw)
	s.discard()
	return err
}

// prependTypeMeta writes members in front of the object that is kept, over bytes that
// are done with: lists of built-in kinds leave kind and apiVersion out of their
// items, watches don't, and readers should not have to care.
func (s *splitter) prependTypeMeta(typeMeta []byte) []byte {
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

// typeMetaOf is what prefix writes: an opening brace, kind, apiVersion and a comma.
func typeMetaOf(r vedette.Resource) []byte {
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, r.Kind.Name, r.APIVersion())
}

// unexpectedEOF turns an end of stream into one that should not be there.
func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
