package configfile

import (
	"reflect"
	"strings"
)

// Key describes one key of a configuration, for the reference.
type Key struct {
	Path    string // for example "kubernetes.accounts[].name"
	Aliases []string
	Type    string // "string", "integer", "list of strings", ...; empty for a group of keys
	Default string
	Env     string // the variable that applies if nothing else sets the key
	Status  Status
	Warn    bool   // users may rely on the effect that it does not have
	GoType  string // the struct that contains the field with its package, to find its comment
	GoField string // for example "Armory.Secret" if the struct of Armory has no name
	Group   string // the type of a group of keys with its package; empty for a leaf or a struct without a name
}

// Keys returns all keys of a struct type, each group before its keys.
func Keys(config any) []Key {
	t := indirect(reflect.TypeOf(config))
	return keysOf(t, location{}, qualifiedName(t), "")
}

func keysOf(t reflect.Type, p location, goType, goPrefix string) (keys []Key) {
	for _, s := range keySpecs(t) {
		f := t.FieldByIndex(s.index)
		location := p.key(s)
		key := Key{Path: location.path, Aliases: s.aliases, Default: s.defaultValue, Env: s.env, Status: location.status, Warn: location.warn,
			GoType: goType, GoField: goPrefix + f.Name}
		if last := len(s.index) - 1; last > 0 {
			key.GoType = qualifiedName(t.FieldByIndex(s.index[:last]).Type)
		}
		ft := indirect(f.Type)
		if s.isLeaf {
			key.Type = s.typeName(ft)
			keys = append(keys, key)
			continue
		}
		if ft.Kind() == reflect.Slice {
			ft, location.path = ft.Elem(), location.path+"[]"
		}
		key.Group = qualifiedName(ft)
		keys = append(keys, key)
		if key.Group == "" {
			keys = append(keys, keysOf(ft, location, key.GoType, key.GoField+".")...)
		} else {
			keys = append(keys, keysOf(ft, location, key.Group, "")...)
		}
	}
	return keys
}

// qualifiedName returns the name of a type after the import path of its package, or "" if it has no name.
func qualifiedName(t reflect.Type) string {
	if t.Name() == "" {
		return ""
	}
	return t.PkgPath() + "." + t.Name()
}

// typeName returns the name of a type as a user knows it.
func typeName(t reflect.Type) string {
	if named, ok := reflect.Zero(t).Interface().(interface{ ConfigTypeName() string }); ok {
		return named.ConfigTypeName()
	}
	switch t {
	case reflect.TypeFor[Secret]():
		return "secret string"
	case reflect.TypeFor[Bytes]():
		return "size"
	case durationType:
		return "duration"
	case reflect.TypeFor[Ignored]():
		return "any"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list of " + typeName(t.Elem()) + "s"
	case reflect.Map:
		if isLeaf(t.Elem()) {
			return "map of " + typeName(t.Elem()) + "s"
		}
		return "map of groups"
	case reflect.Struct:
		return strings.ToLower(t.Name())
	}
	return "string"
}
