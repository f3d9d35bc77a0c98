package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/vedette-io/vedette"
)

// object is a JSON object.
type object = map[string]any

// Manifest is one object as it stands, or is meant to stand, in a cluster. Its
// numbers are json.Number where it was decoded by this package, so that they
// come out as they went in. Its methods take any content; those that return a
// part of it return nothing where that part is missing or of another type.
type Manifest map[string]any

// Parse reads a JSON object, or an array of them, as manifests. Lists are not
// taken apart; nulls are dropped.
func Parse(raw []byte) ([]Manifest, error) {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || trimmed[0] != '[' {
		var m Manifest
		err := m.UnmarshalJSON(raw)
		return nonNilManifests([]Manifest{m}), err
	}
	var all []Manifest
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, decodeError("the manifests are", err)
	}
	return nonNilManifests(all), nil
}

// nonNilManifests drops nulls.
func nonNilManifests(all []Manifest) []Manifest {
	kept := make([]Manifest, 0, len(all))
	for _, m := range all {
		if m != nil {
			kept = append(kept, m)
		}
	}
	return kept
}

// UnmarshalJSON reads one object and keeps its numbers. Its errors are
// vedette.Invalid and repeat nothing of the manifest, which may be a Secret.
func (m *Manifest) UnmarshalJSON(raw []byte) error {
	var o object
	if err := decode(raw, &o); err != nil {
		return decodeError("the manifest is", err)
	}
	*m = o
	return nil
}

// decode reads one JSON value and keeps numbers where nothing says of what type
// they are.
func decode(raw []byte, target any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(target); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the value")
	}
	return nil
}

func decodeError(what string, err error) error {
	var public *vedette.Error
	var syntax *json.SyntaxError
	var typeErr *json.UnmarshalTypeError
	switch {
	case errors.As(err, &public):
		return err
	case errors.As(err, &syntax):
		return vedette.Errorf(vedette.Invalid, "%s no JSON: broken at byte %d", what, syntax.Offset)
	case errors.As(err, &typeErr) && typeErr.Field != "":
		return vedette.Errorf(vedette.Invalid, "%s not of the form expected: %s is of type %s", what, typeErr.Field, typeErr.Value)
	case errors.As(err, &typeErr):
		return vedette.Errorf(vedette.Invalid, "%s no JSON object but of type %s", what, typeErr.Value)
	}
	return vedette.Errorf(vedette.Invalid, "%s no JSON: cut short, or followed by something else", what)
}

// JSON encodes a manifest.
func (m Manifest) JSON() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(object(m)); err != nil { // what was decoded can be encoded
		panic(fmt.Sprintf("encode a manifest: %v", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Clone copies a manifest, all of it.
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

// Name returns the name, empty where the cluster is to make one.
func (m Manifest) Name() string { return stringField(m.metadata(), "name") }

// Namespace returns the namespace as it is written: empty for cluster-scoped
// kinds, and where "default" is meant.
func (m Manifest) Namespace() string { return stringField(m.metadata(), "namespace") }

// HasGenerateName reports whether the cluster is to make the name.
func (m Manifest) HasGenerateName() bool {
	return m.Name() == "" && stringField(m.metadata(), "generateName") != ""
}

// FullName returns the kind as Clouddriver writes it and the name, or what the
// name is to be made from: "replicaSet web-v003".
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

// WithAnnotation returns a copy that has an annotation, unless it names that already or
// holds something in its place that is no object.
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

// hasAnnotation reports whether an annotation is there, be it empty.
func (m Manifest) hasAnnotation(key string) bool {
	annotations, _ := m.metadata()["annotations"].(object)
	_, exists := annotations[key]
	return exists
}

// Labels returns the labels, a copy.
func (m Manifest) Labels() map[string]string {
	labels, _ := m.metadata()["labels"].(object)
	return stringMap(labels)
}

// metadata returns nil where there is none, which can be read.
func (m Manifest) metadata() object {
	meta, _ := m["metadata"].(object)
	return meta
}

// templateMetadata returns the metadata of spec.template; nil where there is none, and
// then there is nothing to annotate: Clouddriver adds none.
func (m Manifest) templateMetadata() object {
	meta, _ := nested(object(m), "spec", "template", "metadata").(object)
	return meta
}

// nested follows keys through objects; nil where they end.
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

// ensureObject returns the object under a key and makes it where it is missing.
func ensureObject(o object, key string) object {
	inner, ok := o[key].(object)
	if !ok {
		inner = object{}
		o[key] = inner
	}
	return inner
}
