package manifest

import (
	"strings"

	"github.com/vedette-io/vedette"
)

// ExpandLists replaces lists by their items, recursively. Lists are objects of the kind List,
// and of kinds like ConfigMapList that have items and no name. Items of the latter may omit
// their kind.
func ExpandLists(all []Manifest) ([]Manifest, error) {
	var flat []Manifest
	for _, m := range all {
		if m == nil {
			continue
		}
		if !m.isList() {
			flat = append(flat, m)
			continue
		}
		items, err := m.items()
		if err != nil {
			return nil, err
		}
		inner, err := ExpandLists(items)
		if err != nil {
			return nil, err
		}
		flat = append(flat, inner...)
	}
	return flat, nil
}

func (m Manifest) isList() bool {
	kind := stringField(object(m), "kind")
	if strings.EqualFold(kind, "List") {
		return true
	}
	_, hasItems := m["items"].([]any)
	return hasItems && strings.HasSuffix(kind, "List") && m.Name() == "" && stringField(m.metadata(), "generateName") == ""
}

func (m Manifest) items() ([]Manifest, error) {
	raw, ok := m["items"].([]any)
	if !ok && m["items"] != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the items of a manifest of kind %s must be an array", stringField(object(m), "kind"))
	}
	var all []Manifest
	for i, element := range raw {
		item, ok := element.(object)
		if !ok {
			return nil, vedette.Errorf(vedette.Invalid, "item %d of a manifest of kind %s must be an object", i, stringField(object(m), "kind"))
		}
		all = append(all, m.completeItem(item))
	}
	return all, nil
}

// completeItem sets the kind of an item from the kind of its list.
func (m Manifest) completeItem(item object) Manifest {
	kind := stringField(object(m), "kind")
	if item["kind"] != nil || strings.EqualFold(kind, "List") {
		return item
	}
	typed := Manifest(item).Clone()
	typed["kind"] = strings.TrimSuffix(kind, "List")
	if typed["apiVersion"] == nil {
		typed["apiVersion"] = m["apiVersion"]
	}
	return typed
}

// validate rejects manifests that no API server accepts. Its errors quote only kind and name,
// because the manifest can be a Secret.
func (m Manifest) validate() error {
	kind := stringField(object(m), "kind")
	meta, ok := m["metadata"].(object)
	switch {
	case kind == "":
		return vedette.Errorf(vedette.Invalid, "a manifest has no kind")
	case m.APIVersion() == "":
		return vedette.Errorf(vedette.Invalid, "a manifest of kind %s has no apiVersion", kind)
	case !ok:
		return vedette.Errorf(vedette.Invalid, "a manifest of kind %s has no metadata", kind)
	}
	for _, field := range []string{"name", "generateName", "namespace"} {
		if _, ok := meta[field].(string); !ok && meta[field] != nil {
			return vedette.Errorf(vedette.Invalid, "metadata.%s of a manifest of kind %s must be a string", field, kind)
		}
	}
	if m.Name() == "" && !m.HasGenerateName() {
		return vedette.Errorf(vedette.Invalid, "a manifest of kind %s has no metadata.name", kind)
	}
	for _, meta := range metadataObjects(m) {
		if err := m.checkStringValues(meta, "labels"); err != nil {
			return err
		}
		if err := m.checkStringValues(meta, "annotations"); err != nil {
			return err
		}
	}
	return nil
}

// checkStringValues rejects labels and annotations that are not strings, because YAML converts
// an unquoted true to a boolean.
func (m Manifest) checkStringValues(meta object, field string) error {
	all, ok := meta[field].(object)
	if !ok && meta[field] != nil {
		return vedette.Errorf(vedette.Invalid, "the %s of %s must be an object", field, m.FullName())
	}
	for key, value := range all {
		if _, ok := value.(string); !ok {
			return vedette.Errorf(vedette.Invalid, "the value of %s in the %s of %s must be a string: quote it", key, field, m.FullName())
		}
	}
	return nil
}
