package configfile

import (
	"reflect"
	"strings"
)

// Key describes one key of a configuration, for the reference.
type Key struct {
	Path    string // for example "kubernetes.accounts[].name"
	Aliases []string
	Type    string // "text", "whole number", "list of text" and so on; "" for a group of keys
	Default string
	Env     string // the variable that sets the key if nothing else does
	Unused  bool
	GoType  string // the struct that contains the field, to find its comment
	GoField string // for example "Armory.Secret" if the struct of Armory has no name
	Group   string // the type of a group of keys; "" for a leaf or a struct without a name
}

// Keys returns all keys of a struct type, each group before its keys.
func Keys(config any) []Key {
	t := indirect(reflect.TypeOf(config))
	return keysOf(t, location{}, t.Name(), "")
}

func keysOf(t reflect.Type, p location, goType, goPrefix string) (keys []Key) {
	for _, s := range keySpecs(t) {
		f := t.FieldByIndex(s.index)
		location := p.key(s)
		key := Key{Path: location.path, Aliases: s.aliases, Default: s.defaultValue, Env: s.env, Unused: location.unused, GoType: goType, GoField: goPrefix + f.Name}
		if len(s.index) > 1 {
			key.GoType = t.Field(s.index[0]).Type.Name()
		}
		ft := indirect(f.Type)
		if isLeaf(ft) {
			key.Type = typeName(ft)
			keys = append(keys, key)
			continue
		}
		if ft.Kind() == reflect.Slice {
			ft, location.path = ft.Elem(), location.path+"[]"
		}
		key.Group = ft.Name()
		keys = append(keys, key)
		if ft.Name() == "" {
			keys = append(keys, keysOf(ft, location, key.GoType, key.GoField+".")...)
		} else {
			keys = append(keys, keysOf(ft, location, ft.Name(), "")...)
		}
	}
	return keys
}

// typeName returns a type's name for users.
func typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Secret]():
		return "secret text"
	case reflect.TypeFor[Bytes]():
		return "size"
	case reflect.TypeFor[Duration]():
		return "duration"
	case reflect.TypeFor[Ignored]():
		return "anything"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list of " + typeName(t.Elem())
	case reflect.Map:
		if isLeaf(t.Elem()) {
			return "map of " + typeName(t.Elem())
		}
		return "map of groups"
	case reflect.Struct:
		return strings.ToLower(t.Name())
	}
	return "text"
}
