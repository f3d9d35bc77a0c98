package watch

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/vedette-io/vedette"
)

// meta is what is read of an object here.
type meta struct {
	Kind              string
	Name              string
	Namespace         string
	Version           vedette.Mark
	EndsInitialEvents bool // it is the bookmark that ends the initial events
	Managed           bool // Spinnaker wrote its application on it
}

// errStopWalk stops a walk whose purpose is met.
var errStopWalk = errors.New("enough")

// versionOf returns the resourceVersion of an object. It reads no further than
// that, which is a few hundred bytes of most objects.
func versionOf(raw []byte) (vedette.Mark, error) {
	var m meta
	err := walkMeta(raw, &m, func() bool { return m.Version != "" })
	if err == nil && m.Version == "" {
		err = fmt.Errorf("%w: an object without metadata.resourceVersion", errMalformed)
	}
	return m.Version, err
}

// metaOf reads all of meta.
func metaOf(raw []byte) (meta, error) {
	var m meta
	err := walkMeta(raw, &m, func() bool { return false })
	return m, err
}

func walkMeta(raw []byte, m *meta, done func() bool) error {
	s := splitBytes(raw)
	err := s.object(func(key string) error {
		switch key {
		case "kind":
			b, err := s.text()
			m.Kind = string(b)
			return err
		case "metadata":
			return s.object(func(key string) error {
				if err := s.metaMember(key, m); err != nil {
					return err
				}
				if done() {
					return errStopWalk
				}
				return nil
			})
		}
		return s.skip()
	})
	if err == errStopWalk {
		return nil
	}
	return err
}

func (s *splitter) metaMember(key string, m *meta) error {
	var target *string
	switch key {
	case "annotations":
		return s.annotations(m)
	case "resourceVersion":
		b, err := s.text()
		m.Version = vedette.Mark(b)
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

func (s *splitter) annotations(m *meta) error {
	if c, err := s.peek(); err != nil || c != '{' {
		return s.skip()
	}
	return s.object(func(key string) error {
		if key != endOfInitialEvents && key != managedAnnotation {
			return s.skip()
		}
		b, err := s.text()
		m.EndsInitialEvents = m.EndsInitialEvents || key == endOfInitialEvents && string(b) == "true"
		m.Managed = m.Managed || key == managedAnnotation && len(b) > 0
		return err
	})
}

// hasTypeMeta reports whether an object says its kind before its metadata or spec, as
// every encoder in Kubernetes writes it.
func hasTypeMeta(raw []byte) bool {
	rest := bytes.TrimLeft(raw[1:], " \t\r\n")
	return bytes.HasPrefix(rest, []byte(`"kind"`)) || bytes.HasPrefix(rest, []byte(`"apiVersion"`))
}
