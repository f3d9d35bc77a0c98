package apistub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/vedette-io/vedette"
)

// object is one recorded object.
type object struct {
	apiVersion, kind, namespace, name string

	labels   labels.Set
	fields   map[string]any
	raw      []byte // as JSON on one line, because watches separate objects by line breaks
	item     []byte // without kind and apiVersion, which a list has once
	metadata []byte // as PartialObjectMetadata
}

func parseObject(raw []byte) (*object, error) {
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // keeps numbers as they were recorded
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("parse an object: %w", err)
	}
	var meta struct {
		APIVersion, Kind string
		Metadata         struct {
			Namespace, Name string
			Labels          map[string]string
		}
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, fmt.Errorf("parse an object: %w", err)
	}
	if meta.APIVersion == "" || meta.Kind == "" || meta.Metadata.Name == "" {
		return nil, fmt.Errorf("parse an object: apiVersion, kind or metadata.name is missing in %.100s", raw)
	}
	o := &object{apiVersion: meta.APIVersion, kind: meta.Kind, namespace: meta.Metadata.Namespace, name: meta.Metadata.Name,
		labels: meta.Metadata.Labels, fields: tree}
	return o, o.encode()
}

// encode fills in the forms in which the object is served.
func (o *object) encode() (err error) {
	if o.raw, err = json.Marshal(o.fields); err != nil {
		return fmt.Errorf("encode %s %s: %w", o.kind, o.name, err)
	}
	item := maps.Clone(o.fields)
	delete(item, "kind")
	delete(item, "apiVersion")
	if o.item, err = json.Marshal(item); err != nil {
		return fmt.Errorf("encode %s %s: %w", o.kind, o.name, err)
	}
	o.metadata, err = json.Marshal(map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o.fields["metadata"]})
	return err
}

// isOf reports whether the object is of a resource.
func (o *object) isOf(r vedette.Resource) bool {
	group, _, hasGroup := strings.Cut(o.apiVersion, "/")
	if !hasGroup {
		group = ""
	}
	return group == r.Kind.Group && o.kind == r.Kind.Name
}

// Has implements fields.Fields.
func (o *object) Has(field string) bool { return o.Get(field) != "" }

// Get implements fields.Fields. Unlike API servers, it knows all fields.
func (o *object) Get(field string) string {
	var value any = o.fields
	for name := range strings.SplitSeq(field, ".") {
		tree, ok := value.(map[string]any)
		if !ok {
			return ""
		}
		value = tree[name]
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// selector says which objects of a resource a request wants.
type selector struct {
	namespace string // "" for all
	labels    labels.Selector
	fields    fields.Selector
}

func (s selector) matches(o *object) bool {
	return (s.namespace == "" || s.namespace == o.namespace) && s.labels.Matches(o.labels) && s.fields.Matches(o)
}
