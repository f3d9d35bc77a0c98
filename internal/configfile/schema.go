package configfile

import (
	"encoding"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Status says whether a key has an effect.
type Status int

// A key of a group is at least as inactive as its group.
const (
	ActiveKey  Status = iota
	IgnoredKey        // accepted so that files of other products load
)

// keySpec holds what the tags of a struct field define for a key:
//
//	config:"clientKeyFilePassword,alias=clientKeyPassword" default:"x" env:"LOG_LEVEL"
//	config:"fields,ignored,warn"
//	config:"timeoutMs" format:"milliseconds" default:"500" minimum:"1" maximum:"60000"
//	config:"protocol" enum:"http,https" default:"http"
//
// alias may be repeated. ignored marks a key without an effect; on a
// group it applies to all keys in it. warn marks such a key if users may rely on
// its effect, so that programs warn at start (see InactiveSettings). default is
// written as in YAML. env names a variable that applies if nothing else sets
// the key. A field without a config tag is not part of the file. An embedded
// struct without one adds its keys to the struct that embeds it, and so does a field with the tag config:",inline".
//
// format, minimum, maximum and enum mean what they mean in Kubernetes' schemas; see limits.go.
type keySpec struct {
	name         string
	aliases      []string
	status       Status
	warn         bool
	defaultValue string // "" for none
	env          string
	limits
	index  []int
	isLeaf bool // of the type to which the field points, if it does
}

// knownSpecs holds the keys of struct types, because a file may have thousands of accounts, and
// parsing the tags of each took half of the time.
var knownSpecs sync.Map // []keySpec by reflect.Type

// keySpecs returns the keys of a struct type in the order of its fields. The slice must not be changed.
func keySpecs(t reflect.Type) []keySpec {
	if known, ok := knownSpecs.Load(t); ok {
		return known.([]keySpec)
	}
	specs := parseSpecs(t)
	knownSpecs.Store(t, specs)
	return specs
}

func parseSpecs(t reflect.Type) []keySpec {
	var specs []keySpec
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("config")
		switch {
		case tag == ",inline", !tagged && f.Anonymous && f.Type.Kind() == reflect.Struct:
			for _, s := range keySpecs(f.Type) {
				s.index = append([]int{i}, s.index...)
				specs = append(specs, s)
			}
			continue
		case !tagged:
			continue
		}
		s := keySpec{defaultValue: f.Tag.Get("default"), env: f.Tag.Get("env"), limits: limitsOf(f.Tag), index: []int{i},
			isLeaf: isLeaf(indirect(f.Type))}
		s.parseTag(tag)
		specs = append(specs, s)
	}
	return specs
}

func (s *keySpec) parseTag(tag string) {
	parts := strings.Split(tag, ",")
	s.name = parts[0]
	for _, part := range parts[1:] {
		if alias, ok := strings.CutPrefix(part, "alias="); ok {
			s.aliases = append(s.aliases, alias)
		}
		switch part {
		case "ignored":
			s.status = IgnoredKey
		case "warn":
			s.warn = true
		}
	}
}

func (s keySpec) names() []string { return append([]string{s.name}, s.aliases...) }

// matchKey finds the spec for a key: by its exact name, by another notation of it, or by the first words
// of a dotted key. It returns the rest of a dotted key.
func matchKey(specs []keySpec, key string) (found int, rest string) {
	for i, s := range specs {
		if slices.Contains(s.names(), key) {
			return i, ""
		}
	}
	found = -1
	for i, s := range specs {
		for _, name := range s.names() {
			if below, ok := cutRelaxed(key, name); ok && (found < 0 || len(below) < len(rest)) {
				found, rest = i, below
			}
		}
	}
	return found, rest
}

// keyNames returns the keys of a group, for suggestions.
func keyNames(specs []keySpec) []string {
	var names []string
	for _, s := range specs {
		names = append(names, s.names()...)
	}
	return names
}

// uniquePathOf returns the only path below a type with the given key, to suggest it if a key is
// indented wrongly. It returns nil if there is none or more than one.
func uniquePathOf(t reflect.Type, key string) []string {
	var found []string
	walkKeys(t, "", func(path string, s keySpec) {
		if strings.EqualFold(s.name, key) {
			found = append(found, path)
		}
	})
	if len(found) != 1 {
		return nil
	}
	return found
}

// walkKeys visits each key below a struct type, except unused ones. Paths have "[]" for entries of
// lists.
func walkKeys(t reflect.Type, path string, visit func(path string, s keySpec)) {
	for _, s := range keySpecs(t) {
		if s.status != ActiveKey {
			continue
		}
		keyPath := joinPath(path, s.name)
		visit(keyPath, s)
		switch ft := indirect(t.FieldByIndex(s.index).Type); {
		case s.isLeaf:
		case ft.Kind() == reflect.Struct:
			walkKeys(ft, keyPath, visit)
		case ft.Kind() == reflect.Slice:
			walkKeys(ft.Elem(), keyPath+"[]", visit)
		}
	}
}

var (
	unmarshalerType     = reflect.TypeFor[Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// isLeaf reports whether a type is decoded as a whole, so that there are no keys below it.
func isLeaf(t reflect.Type) bool {
	if p := reflect.PointerTo(t); p.Implements(unmarshalerType) || p.Implements(textUnmarshalerType) {
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
