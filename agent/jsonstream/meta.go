package jsonstream

import (
	"bytes"
	"errors"
	"fmt"
)

// Meta is the part of an object's metadata that this package reads.
type Meta struct {
	Name              string
	Namespace         string
	Version           string // the resourceVersion
	EndsInitialEvents bool   // the object is the bookmark that ends the initial events
	Managed           bool   // the object has Spinnaker's application annotation
}

// errStopWalk ends a walk early. It never leaves the package.
var errStopWalk = errors.New("stop walking")

// ResourceVersion returns the resourceVersion of an object. It stops reading there,
// which is after a few hundred bytes of most objects.
func ResourceVersion(raw []byte) (string, error) {
	var m Meta
	err := walkMeta(raw, &m, func() bool { return m.Version != "" })
	if err == nil && m.Version == "" {
		err = fmt.Errorf("%w: an object without metadata.resourceVersion", ErrMalformed)
	}
	return m.Version, err
}

// ReadMeta reads the metadata of an object. If the object is cut off, it returns what
// it found together with the error.
func ReadMeta(raw []byte) (Meta, error) {
	var m Meta
	err := walkMeta(raw, &m, func() bool { return false })
	return m, err
}

func walkMeta(raw []byte, m *Meta, done func() bool) error {
	s := splitBytes(raw)
	err := s.object(func(key string) error {
		if key != "metadata" {
			return s.skip()
		}
		return s.object(func(key string) error {
			if err := s.metaMember(key, m); err != nil {
				return err
			}
			if done() {
				return errStopWalk
			}
			return nil
		})
	})
	if errors.Is(err, errStopWalk) {
		return nil
	}
	return err
}

func (s *Splitter) metaMember(key string, m *Meta) error {
	var target *string
	switch key {
	case "annotations":
		return s.annotations(m)
	case "resourceVersion":
		b, err := s.text()
		m.Version = string(b)
		return err
	case "name":
		target = &m.Name
	case "namespace":
		target = &m.Namespace
	default:
		return s.skip()
	}
	b, err := s.text()
	*target = string(b)
	return err
}

func (s *Splitter) annotations(m *Meta) error {
	if c, err := s.peek(); err != nil || c != '{' {
		return s.skip()
	}
	return s.object(func(key string) error {
		if key != endOfInitialEvents && key != ManagedAnnotation {
			return s.skip()
		}
		b, err := s.text()
		m.EndsInitialEvents = m.EndsInitialEvents || key == endOfInitialEvents && string(b) == "true"
		m.Managed = m.Managed || key == ManagedAnnotation && len(b) > 0
		return err
	})
}

// hasTypeMeta reports whether an object begins with kind or apiVersion, as every
// encoder of Kubernetes writes it.
func hasTypeMeta(raw []byte) bool {
	rest := bytes.TrimLeft(raw[1:], " \t\r\n")
	return bytes.HasPrefix(rest, []byte(`"kind"`)) || bytes.HasPrefix(rest, []byte(`"apiVersion"`))
}
