package apply

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// mergeRules are the rules by which values of one type merge. They are the small part of an
// OpenAPI document that a strategic merge patch needs. The document itself is not kept, because it
// takes megabytes, and each lookup in it allocates a kilobyte.
type mergeRules struct {
	fields map[string]*fieldRules // nil for a type without named members
}

// fieldRules are the rules of one member of a type.
type fieldRules struct {
	meta          strategicpatch.PatchMeta
	value         *mergeRules // of the member's value
	element       *mergeRules // of one element, if the value is a list
	unresolvedRef string      // the reference whose target is missing; empty for none
}

var _ strategicpatch.LookupPatchMeta = (*mergeRules)(nil)

// LookupPatchMetadataForStruct implements strategicpatch.LookupPatchMeta.
func (r *mergeRules) LookupPatchMetadataForStruct(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	f, err := r.lookup(key)
	if err != nil {
		return nil, strategicpatch.PatchMeta{}, err
	}
	return f.value, f.meta, nil
}

// LookupPatchMetadataForSlice implements strategicpatch.LookupPatchMeta.
func (r *mergeRules) LookupPatchMetadataForSlice(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	f, err := r.lookup(key)
	if err != nil {
		return nil, strategicpatch.PatchMeta{}, err
	}
	return f.element, f.meta, nil
}

// Name implements strategicpatch.LookupPatchMeta, which uses it in messages.
func (r *mergeRules) Name() string { return "object" }

func (r *mergeRules) lookup(key string) (*fieldRules, error) {
	f := r.fields[key]
	switch {
	case f == nil:
		return nil, fmt.Errorf("the API has no such field: %q", key)
	case f.unresolvedRef != "":
		return nil, fmt.Errorf("the API describes field %q by %s, which its OpenAPI document does not define", key, f.unresolvedRef)
	}
	return f, nil
}

// openAPISchema is the part of a type's OpenAPI v3 schema from which the rules are built.
type openAPISchema struct {
	Ref        string                    `json:"$ref"`
	AllOf      []*openAPISchema          `json:"allOf"`
	Items      *openAPISchema            `json:"items"`
	Properties map[string]*openAPISchema `json:"properties"`
	MergeKey   string                    `json:"x-kubernetes-patch-merge-key"`
	Strategy   string                    `json:"x-kubernetes-patch-strategy"`
	Kinds      []groupVersionKind        `json:"x-kubernetes-group-version-kind"`
}

// ruleBuilder builds the rules of the types of one document. It builds each type once, because
// some are recursive.
type ruleBuilder struct {
	types map[string]*openAPISchema
	built map[*openAPISchema]*mergeRules
}

// noRules are the rules of a type without named members.
var noRules = &mergeRules{}

func (b *ruleBuilder) rulesFor(d *openAPISchema) *mergeRules {
	if d == nil || len(d.Properties) == 0 {
		return noRules
	}
	if r := b.built[d]; r != nil {
		return r
	}
	r := &mergeRules{fields: make(map[string]*fieldRules, len(d.Properties))}
	b.built[d] = r
	for key, property := range d.Properties {
		if property != nil {
			r.fields[key] = b.fieldRulesFor(property)
		}
	}
	return r
}

// atomicField is a field whose value is replaced as a whole. Most fields share it.
var atomicField = &fieldRules{value: noRules, element: noRules}

func (b *ruleBuilder) fieldRulesFor(d *openAPISchema) *fieldRules {
	var f fieldRules
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
	value, found := b.resolve(d)
	if !found {
		return &fieldRules{unresolvedRef: value.Ref}
	}
	element, found = b.resolve(element)
	if !found {
		return &fieldRules{unresolvedRef: element.Ref}
	}
	f.value, f.element = b.rulesFor(value), b.rulesFor(element)
	if f.value == noRules && f.element == noRules && d.MergeKey == "" && d.Strategy == "" {
		return atomicField
	}
	return &f
}

// resolve follows a reference. A schema that has more than a reference wraps it in allOf. If the
// target is missing, resolve returns the schema that refers to it, and false.
func (b *ruleBuilder) resolve(d *openAPISchema) (*openAPISchema, bool) {
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
