package configfile

import (
	"encoding"
	"reflect"
	"strings"
)

// spec is what a struct field's tags say of a key:
//
//	config:"clientKeyFilePassword,alias=clientKeyPassword,unused" default:"x" env:"LOG_LEVEL"
//
// alias may stand several times. unused marks a key that is accepted and has no
// effect; for a group it holds for all below. default is written as in YAML.
// env names a variable that counts where nothing else sets the key. A field
// without a config tag is not part of the file; an embedded struct without one
// lends its keys to the struct that holds it.
type spec struct {
	name     string
	aliases  []string
	unused   bool
	fallback string // "" for none
	env      string
	index    []int
}

// specsOf lists the keys of a struct type in the order of its fields.
func specsOf(t reflect.Type) []spec {
	var specs []spec
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("config")
		if !tagged {
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				for _, s := range specsOf(f.Type) {
					s.index = append([]int{i}, s.index...)
					specs = append(specs, s)
				}
			}
			continue
		}
		s := spec{fallback: f.Tag.Get("default"), env: f.Tag.Get("env"), index: []int{i}}
		s.read(tag)
		specs = append(specs, s)
	}
	return specs
}

func (s *spec) read(tag string) {
	parts := strings.Split(tag, ",")
	s.name = parts[0]
	for _, part := range parts[1:] {
		if alias, ok := strings.CutPrefix(part, "alias="); ok {
			s.aliases = append(s.aliases, alias)
		}
		s.unused = s.unused || part == "unused"
	}
}

func (s spec) names() []string { return append([]string{s.name}, s.aliases...) }

// match finds the spec that a key means: by its exact name, then in any case,
// then by the first words of a dotted key, whose rest it returns.
func match(specs []spec, key string) (found int, rest string) {
	for i, s := range specs {
		for _, name := range s.names() {
			if name == key {
				return i, ""
			}
		}
	}
	found = -1
	for i, s := range specs {
		for _, name := range s.names() {
			if below, ok := cutFold(key, name); ok && (found < 0 || len(below) < len(rest)) {
				found, rest = i, below
			}
		}
	}
	return found, rest
}

// names lists what may stand in a group, for suggestions.
func namesOf(specs []spec) []string {
	var names []string
	for _, s := range specs {
		names = append(names, s.names()...)
	}
	return names
}

// elsewhere finds the one path below a type at which a key does exist, for
// whoever indented it wrongly; nil where there is none or more than one.
func elsewhere(t reflect.Type, key string) []string {
	var found []string
	walkTypes(t, "", func(path string, s spec) {
		if strings.EqualFold(s.name, key) {
			found = append(found, path)
		}
	})
	if len(found) != 1 {
		return nil
	}
	return found
}

// walkTypes visits each key below a struct type, but for those without effect.
// Entries of lists have "[]" in their path.
func walkTypes(t reflect.Type, path string, visit func(path string, s spec)) {
	for _, s := range specsOf(t) {
		if s.unused {
			continue
		}
		at := join(path, s.name)
		visit(at, s)
		switch ft := indirect(t.FieldByIndex(s.index).Type); {
		case isLeaf(ft):
		case ft.Kind() == reflect.Struct:
			walkTypes(ft, at, visit)
		case ft.Kind() == reflect.Slice:
			walkTypes(ft.Elem(), at+"[]", visit)
		}
	}
}

var (
	unmarshaler     = reflect.TypeFor[Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// isLeaf reports whether a type is read in one piece, so that nothing below it
// has keys that we know.
func isLeaf(t reflect.Type) bool {
	if p := reflect.PointerTo(t); p.Implements(unmarshaler) || p.Implements(textUnmarshaler) {
		return true
	}
	switch t.Kind() {
	case reflect.Struct:
		return false
	case reflect.Slice:
		return t.Elem().Kind() != reflect.Struct || isLeaf(t.Elem())
	}
	return true
}
