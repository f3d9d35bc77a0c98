package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
)

type object = map[string]any

// Manifest is an object as it is in a cluster, or should be. Numbers are json.Number if this
// package decoded it, so that they do not change. Methods accept any content: if a part is
// missing or has another type, they return its zero value.
type Manifest map[string]any

func nonNilManifests(all []Manifest) []Manifest {
	kept := make([]Manifest, 0, len(all))
	for _, m := range all {
		if m != nil {
			kept = append(kept, m)
		}
	}
	return kept
}

// UnmarshalJSON parses one object and preserves its numbers. Errors are vedette.Invalid and do
// not quote the manifest, because it can be a Secret.
func (m *Manifest) UnmarshalJSON(raw []byte) error {
	var o object
	if err := decode(raw, &o); err != nil {
		return decodeError("the manifest is", err)
	}
	*m = o
	return nil
}

// decode decodes one JSON value. Numbers in untyped values become json.Number.
func decode(raw []byte, target any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(target); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the value")
	}
	return exactjson.Check(raw) // a member that occurs twice has another value for other readers
}

func decodeError(what string, err error) error {
	var public *vedette.Error
	var syntax *json.SyntaxError
	var typeErr *json.UnmarshalTypeError
	switch {
	case errors.As(err, &public):
		return err
	case errors.As(err, &syntax):
		return vedette.Errorf(vedette.Invalid, "%s not valid JSON: syntax error at byte %d", what, syntax.Offset)
	case errors.As(err, &typeErr) && typeErr.Field != "":
		return vedette.Errorf(vedette.Invalid, "%s not in the expected form: %s is of type %s", what, typeErr.Field, typeErr.Value)
	case errors.As(err, &typeErr):
		return vedette.Errorf(vedette.Invalid, "%s of type %s instead of a JSON object", what, typeErr.Value)
	}
	return vedette.Errorf(vedette.Invalid, "%s not valid JSON: incomplete, or followed by other data", what)
}

// JSON encodes a manifest.
func (m Manifest) JSON() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(object(m)); err != nil { // decoded values can be encoded
		panic(fmt.Sprintf("encode a manifest: %v", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Clone returns a deep copy.
func (m Manifest) Clone() Manifest { return Manifest(clone(object(m)).(object)) }

func clone(v any) any {
	switch v := v.(type) {
	case object:
		copied := make(object, len(v))
		for key, inner := range v {
			copied[key] = clone(inner)
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i, inner := range v {
			copied[i] = clone(inner)
		}
		return copied
	}
	return v
}

// APIVersion returns "v1" or "apps/v1".
func (m Manifest) APIVersion() string { return stringField(object(m), "apiVersion") }

// Kind returns the kind and its group.
func (m Manifest) Kind() vedette.Kind { return KindOf(m.APIVersion(), stringField(object(m), "kind")) }

// Name returns the name. It is empty if the cluster generates it.
func (m Manifest) Name() string { return stringField(m.metadata(), "name") }

// Namespace returns the namespace in the manifest. It is empty for cluster-scoped kinds, and
// may be empty for the namespace "default".
func (m Manifest) Namespace() string { return stringField(m.metadata(), "namespace") }

// HasGenerateName reports whether the cluster generates the name.
func (m Manifest) HasGenerateName() bool {
	return m.Name() == "" && stringField(m.metadata(), "generateName") != ""
}

// FullName returns the kind in Clouddriver's form and the name, or the generateName, for
// example "replicaSet web-v003".
func (m Manifest) FullName() string {
	name := m.Name()
	if name == "" {
		name = stringField(m.metadata(), "generateName")
	}
	return KindName(m.Kind()) + " " + name
}

// Annotation returns an annotation, or "".
func (m Manifest) Annotation(key string) string {
	annotations, _ := m.metadata()["annotations"].(object)
	return stringField(annotations, key)
}

// WithAnnotation returns a copy with an annotation. It does not replace an existing
// annotation, or annotations that are not an object.
func (m Manifest) WithAnnotation(key, value string) Manifest {
	m = m.Clone()
	for _, field := range []any{m["metadata"], nested(object(m), "metadata", "annotations")} {
		if _, ok := field.(object); !ok && field != nil {
			return m
		}
	}
	annotations := ensureObject(ensureObject(object(m), "metadata"), "annotations")
	if _, exists := annotations[key]; !exists {
		annotations[key] = value
	}
	return m
}

// hasAnnotation reports whether an annotation exists, even if it is empty.
func (m Manifest) hasAnnotation(key string) bool {
	annotations, _ := m.metadata()["annotations"].(object)
	_, exists := annotations[key]
	return exists
}

// Labels returns a copy of the labels.
func (m Manifest) Labels() map[string]string {
	labels, _ := m.metadata()["labels"].(object)
	return stringMap(labels)
}

// metadata returns the metadata, or nil, which can be read like an empty object.
func (m Manifest) metadata() object {
	meta, _ := m["metadata"].(object)
	return meta
}

// templateMetadata returns the metadata of spec.template, or nil. If it is nil, the template
// is not annotated, because Clouddriver does not add metadata.
func (m Manifest) templateMetadata() object {
	meta, _ := nested(object(m), "spec", "template", "metadata").(object)
	return meta
}

// nested returns the value at a path of keys, or nil.
func nested(v any, keys ...string) any {
	for _, key := range keys {
		o, _ := v.(object)
		v = o[key]
	}
	return v
}

func stringField(o object, key string) string {
	value, _ := o[key].(string)
	return value
}

func stringMap(o object) map[string]string {
	all := make(map[string]string, len(o))
	for key := range o {
		all[key] = stringField(o, key)
	}
	return all
}

// ensureObject returns the object at a key, and creates it if it is missing.
func ensureObject(o object, key string) object {
	inner, ok := o[key].(object)
	if !ok {
		inner = object{}
		o[key] = inner
	}
	return inner
}
