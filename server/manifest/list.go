package manifest

import (
	"strings"

	"github.com/vedette-io/vedette"
)

// Expand takes lists apart, into their items, and lists of those: objects of
// kind List, and of a kind like ConfigMapList that have items and no name. An
// item of the latter may leave out its own kind.
func Expand(all []Manifest) ([]Manifest, error) {
	var flat []Manifest
	for _, m := range all {
		if m == nil {
			continue
		}
		if !m.list() {
			flat = append(flat, m)
			continue
		}
		items, err := m.items()
		if err != nil {
			return nil, err
		}
		inner, err := Expand(items)
		if err != nil {
			return nil, err
		}
		flat = append(flat, inner...)
	}
	return flat, nil
}

func (m Manifest) list() bool {
	kind := text(object(m), "kind")
	if strings.EqualFold(kind, "List") {
		return true
	}
	_, has := m["items"].([]any)
	return has && strings.HasSuffix(kind, "List") && m.Name() == "" && text(m.metadata(), "generateName") == ""
}

func (m Manifest) items() ([]Manifest, error) {
	raw, ok := m["items"].([]any)
	if !ok && m["items"] != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the items of a manifest of kind %s are no array", text(object(m), "kind"))
	}
	var all []Manifest
	for i, element := range raw {
		item, ok := element.(object)
		if !ok {
			return nil, vedette.Errorf(vedette.Invalid, "item %d of a manifest of kind %s is no object", i, text(object(m), "kind"))
		}
		all = append(all, m.complete(item))
	}
	return all, nil
}

// complete gives an item the kind that its list is for.
func (m Manifest) complete(item object) Manifest {
	kind := text(object(m), "kind")
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

// check refuses what no API server could take. Its texts repeat nothing of a
// manifest but its kind and name.
func (m Manifest) check() error {
	kind := text(object(m), "kind")
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
	if m.Name() == "" && !m.Generated() {
		return vedette.Errorf(vedette.Invalid, "a manifest of kind %s has no metadata.name", kind)
	}
	for _, meta := range described(m) {
		if err := m.checkTexts(meta, "labels"); err != nil {
			return err
		}
		if err := m.checkTexts(meta, "annotations"); err != nil {
			return err
		}
	}
	return nil
}

// checkTexts refuses labels and annotations that are no texts: YAML makes a
// boolean of an unquoted true.
func (m Manifest) checkTexts(meta object, field string) error {
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
