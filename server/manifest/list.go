package manifest

import (
	"strings"

	"github.com/vedette-io/vedette"
)

// ExpandLists takes lists apart, into their items, and lists of those: objects of
// kind List, and of a kind like ConfigMapList that have items and no name. An
// item of the latter may leave out its own kind.
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
		return nil, vedette.Errorf(vedette.Invalid, "the items of a manifest of kind %s are no array", stringField(object(m), "kind"))
	}
	var all []Manifest
	for i, element := range raw {
		item, ok := element.(object)
		if !ok {
			return nil, vedette.Errorf(vedette.Invalid, "item %d of a manifest of kind %s is no object", i, stringField(object(m), "kind"))
		}
		all = append(all, m.completeItem(item))
	}
	return all, nil
}

// completeItem gives an item the kind that its list is for.
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

// validate refuses what no API server could take. Its texts repeat nothing of a
// manifest but its kind and name.
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
			return vedette.Errorf(vedette.Invalid, "the metadata.%s of a manifest of kind %s is no text", field, kind)
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

// checkStringValues refuses labels and annotations that are no texts: YAML makes a
// boolean of an unquoted true.
func (m Manifest) checkStringValues(meta object, field string) error {
	all, ok := meta[field].(object)
	if !ok && meta[field] != nil {
		return vedette.Errorf(vedette.Invalid, "the %s of %s are no object", field, m.FullName())
	}
	for key, value := range all {
		if _, ok := value.(string); !ok {
			return vedette.Errorf(vedette.Invalid, "among the %s of %s, the value of %s is no text: put it in quotes", field, m.FullName(), key)
		}
	}
	return nil
}
