package operate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// rules say how the values of one type merge. They are what a strategic merge patch
// needs of an OpenAPI document, and a small part of it: the whole takes megabytes, and
// each look into it a kilobyte.
type rules struct {
	fields map[string]*field // nil for what has no members by name
}

// field is one member of a type.
type field struct {
	meta    strategicpatch.PatchMeta
	value   *rules // of what stands there
	element *rules // of one of its elements, where it is a list
	lacks   string // the reference that leads nowhere; empty for none
}

var _ strategicpatch.LookupPatchMeta = (*rules)(nil)

// LookupPatchMetadataForStruct implements strategicpatch.LookupPatchMeta.
func (r *rules) LookupPatchMetadataForStruct(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	f, err := r.field(key)
	if err != nil {
		return nil, strategicpatch.PatchMeta{}, err
	}
	return f.value, f.meta, nil
}

// LookupPatchMetadataForSlice implements strategicpatch.LookupPatchMeta.
func (r *rules) LookupPatchMetadataForSlice(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	f, err := r.field(key)
	if err != nil {
		return nil, strategicpatch.PatchMeta{}, err
	}
	return f.element, f.meta, nil
}

// Name implements strategicpatch.LookupPatchMeta, which has it for its texts.
func (r *rules) Name() string { return "object" }

func (r *rules) field(key string) (*field, error) {
	f := r.fields[key]
	switch {
	case f == nil:
		return nil, fmt.Errorf("the API has no field %q there", key)
	case f.lacks != "":
		return nil, fmt.Errorf("the API describes field %q by %s, and that nowhere", key, f.lacks)
	}
	return f, nil
}

// description is the part of a type's OpenAPI v3 schema that rules are made of.
type description struct {
	Ref        string                  `json:"$ref"`
	AllOf      []*description          `json:"allOf"`
	Items      *description            `json:"items"`
	Properties map[string]*description `json:"properties"`
	MergeKey   string                  `json:"x-kubernetes-patch-merge-key"`
	Strategy   string                  `json:"x-kubernetes-patch-strategy"`
	Kinds      []kindOf                `json:"x-kubernetes-group-version-kind"`
}

// rulebook makes rules of the types of one document, each once: some hold themselves.
type rulebook struct {
	types map[string]*description
	made  map[*description]*rules
}

// unruled are the rules of what has no members by name.
var unruled = &rules{}

func (b *rulebook) of(d *description) *rules {
	if d == nil || len(d.Properties) == 0 {
		return unruled
	}
	if r := b.made[d]; r != nil {
		return r
	}
	r := &rules{fields: make(map[string]*field, len(d.Properties))}
	b.made[d] = r
	for key, property := range d.Properties {
		if property != nil {
			r.fields[key] = b.field(property)
		}
	}
	return r
}

// plainField is a field whose values are replaced as a whole.
var plainField = &field{value: unruled, element: unruled}

func (b *rulebook) field(d *description) *field {
	var f field
	if d.MergeKey != "" {
		f.meta.SetPatchMergeKey(d.MergeKey)
	}
	if d.Strategy != "" {
		f.meta.SetPatchStrategies(strings.Split(d.Strategy, ","))
	}
	element := d
	if d.Items != nil {
		element = d.Items
	}
	value, there := b.resolve(d)
	if !there {
		return &field{lacks: value.Ref}
	}
	if element, there = b.resolve(element); !there {
		return &field{lacks: element.Ref}
	}
	f.value, f.element = b.of(value), b.of(element)
	if f.value == unruled && f.element == unruled && d.MergeKey == "" && d.Strategy == "" {
		return plainField
	}
	return &f
}

// resolve follows a reference, which a schema with more to say than that wraps in
// allOf. It reports false, and who refers, where that leads nowhere.
func (b *rulebook) resolve(d *description) (*description, bool) {
	if len(d.AllOf) > 0 && d.AllOf[0] != nil {
		d = d.AllOf[0]
	}
	if d.Ref == "" {
		return d, true
	}
	found := b.types[strings.TrimPrefix(d.Ref, "#/components/schemas/")]
	if found == nil {
		return d, false
	}
	return found, true
}
