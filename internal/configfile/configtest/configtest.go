// Package configtest makes configurations with wrong values, for every key of a configuration. Only
// tests import it.
package configtest

import (
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
)

// Wrong is a file in which one key has a value of the wrong type, range or unit.
type Wrong struct {
	Path string // of the key, with the index 0 for entries of lists
	File string // YAML
}

// WrongValues returns files with wrong values for all keys of a configuration.
func WrongValues(config any) (files []Wrong) {
	for _, key := range configfile.Keys(config) {
		values := wrongValues(key.Type)
		if isNumber(key.Type) && key.Status == configfile.ActiveKey && key.Path != "management.server.port" { // -1 as in Spring
			values = append(values, "-1") // no setting means something below 0
		}
		for _, value := range values {
			files = append(files, Wrong{Path: strings.ReplaceAll(key.Path, "[]", "[0]"), File: document(key.Path, value)})
		}
	}
	return files
}

// HasWrongValues reports whether WrongValues has values for a type. Other types decode themselves.
func HasWrongValues(typeName string) bool { return len(wrongValues(typeName)) > 0 }

func isNumber(typeName string) bool { return typeName == "integer" || typeName == "number" }

// wrongValues returns values that a type does not accept. Types that decode themselves have tests of
// their own.
func wrongValues(typeName string) []string {
	const (
		list  = "[x]"
		group = "{x: y}"
		text  = "many"
		large = "99999999999999999999"
	)
	switch {
	case typeName == "boolean":
		return []string{list, group, text, "2"}
	case typeName == "integer":
		return []string{list, group, text, large, "1.5", "10s"}
	case typeName == "number":
		return []string{list, group, text, ".inf", "'1,5'"}
	case typeName == "size":
		return []string{list, group, text, large, "-1", "5XB", "9999999TiB"}
	case typeName == "duration":
		return []string{list, group, text, large, "-1s", "5 parsecs"}
	case strings.HasPrefix(typeName, "list of "):
		return []string{group, "[[x]]", "[{x: y}]"}
	case strings.HasPrefix(typeName, "map of "):
		return []string{list, text, "{x: [y]}"}
	case typeName == "string", typeName == "secret string", typeName == "URL":
		return []string{list, group}
	}
	return nil
}

// document returns the YAML of one key: a.b[].c and x become {a: {b: [{c: x}]}}.
func document(path, value string) string {
	segments := strings.Split(path, ".")
	for i := len(segments) - 1; i >= 0; i-- {
		name, isList := strings.CutSuffix(segments[i], "[]")
		if isList {
			value = "[" + value + "]"
		}
		value = "{" + name + ": " + value + "}"
	}
	return value
}
