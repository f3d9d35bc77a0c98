package jsonstream

import (
	"fmt"
	"io"
)

// extent is where a value lies. It counts from start, so that it stays valid while
// the buffer moves and grows.
type extent struct{ from, to int }

// value moves past the next value and returns its extent.
func (s *Splitter) value() (extent, error) {
	if _, err := s.peek(); err == io.EOF {
		return extent{}, io.ErrUnexpectedEOF
	} else if err != nil {
		return extent{}, err
	}
	from := s.pos - s.start
	err := s.skip()
	return extent{from, s.pos - s.start}, err
}

// bytes returns a value that is still kept, or nil if it was too large.
func (s *Splitter) bytes(e extent) []byte {
	if s.overflowed {
		return nil
	}
	return s.buf[s.start+e.from : s.start+e.to]
}

// text returns the next value without its quotes if it is a string, and nil if it
// is anything else. Escapes are not resolved. The bytes are valid until the next
// call.
func (s *Splitter) text() ([]byte, error) {
	e, err := s.value()
	if err != nil {
		return nil, err
	}
	b := s.bytes(e)
	if len(b) < 2 || b[0] != '"' {
		return nil, nil
	}
	return b[1 : len(b)-1], nil
}

// object walks the members of the next value, an object. The member function gets
// each key as internKey returns it, and must move past the value.
func (s *Splitter) object(member func(key string) error) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	return s.sequence('}', func() error {
		e, err := s.value()
		if err != nil {
			return err
		}
		key := s.bytes(e)
		if !s.overflowed && (len(key) < 2 || key[0] != '"') {
			return fmt.Errorf("%w: found %s, want the name of a member", ErrMalformed, s.excerpt(key))
		}
		name := internKey(key)
		if err := s.expect(':'); err != nil {
			return err
		}
		return member(name)
	})
}

// array walks the elements of the next value, an array or null.
func (s *Splitter) array(element func() error) error {
	c, err := s.token()
	if err != nil {
		return err
	}
	if c == 'n' {
		return s.skipScalar(c)
	}
	if c != '[' {
		return s.malformed(c, "an array")
	}
	return s.sequence(']', element)
}

// sequence walks comma-separated elements up to an end. The caller has read the
// opening bracket.
func (s *Splitter) sequence(end byte, element func() error) error {
	c, err := s.peek()
	if err == nil && c == end {
		return s.expect(end)
	}
	for {
		if err := element(); err != nil {
			return err
		}
		c, err := s.token()
		if err != nil {
			return err
		}
		if c == end {
			return nil
		}
		if c != ',' {
			return s.malformed(c, "a comma")
		}
	}
}

// internKey returns the name of a member that this package reads, and "" for all
// others. It does not allocate, which matters because every event passes here.
func internKey(quoted []byte) string {
	if len(quoted) < 2 {
		return ""
	}
	switch string(quoted[1 : len(quoted)-1]) {
	case "type":
		return "type"
	case "object":
		return "object"
	case "items":
		return "items"
	case "metadata":
		return "metadata"
	case "kind":
		return "kind"
	case "apiVersion":
		return "apiVersion"
	case "resourceVersion":
		return "resourceVersion"
	case "continue":
		return "continue"
	case "annotations":
		return "annotations"
	case "name":
		return "name"
	case "namespace":
		return "namespace"
	case endOfInitialEvents:
		return endOfInitialEvents
	case ManagedAnnotation:
		return ManagedAnnotation
	}
	return ""
}
