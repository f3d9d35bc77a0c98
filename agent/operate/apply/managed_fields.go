package apply

import (
	"maps"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"
)

// pickFields returns the part of a value that is named by fields and not by others, and whether
// there is one. Names begin with f: for a member, k: for the list element with these members, and
// v: for the list element with this value. A name without names below it means the whole value.
func pickFields(value any, fields, others object) (any, bool) {
	if isLeaf(fields) {
		return value, others == nil
	}
	switch v := value.(type) {
	case object:
		return pickMembers(v, fields, others), true
	case []any:
		return pickElements(v, fields, others), true
	}
	return value, true
}

// isLeaf reports whether fields mean the whole value.
func isLeaf(fields object) bool {
	_, self := fields["."]
	return len(fields) == 0 || len(fields) == 1 && self
}

func pickMembers(o, fields, others object) object {
	picked := object{}
	for path, subfields := range fields {
		name, isMember := strings.CutPrefix(path, "f:")
		value, exists := o[name]
		if !isMember || !exists {
			continue
		}
		inner, _ := subfields.(object)
		otherSubfields, _ := others[path].(object)
		if pickedValue, ok := pickFields(value, inner, otherSubfields); ok {
			picked[name] = pickedValue
		}
	}
	return picked
}

// pickElements keeps the order of the list.
func pickElements(list []any, fields, others object) []any {
	picked := []any{}
	for _, element := range list {
		for path, subfields := range fields {
			inner, _ := subfields.(object)
			otherSubfields, _ := others[path].(object)
			if pickedValue, ok := pickElement(element, path, inner, otherSubfields); ok {
				picked = append(picked, pickedValue)
				break
			}
		}
	}
	return picked
}

func pickElement(element any, path string, fields, others object) (any, bool) {
	if !matchesPathElement(element, path) {
		return nil, false
	}
	o, isObject := element.(object)
	if !isObject {
		return element, others == nil
	}
	merged := object{}
	if pickedValue, ok := pickFields(o, fields, others); ok {
		maps.Copy(merged, pickedValue.(object)) // pickFields returns an object for an object
	}
	maps.Copy(merged, parseKeyFields(path)) // a merge needs the keys, owned or not
	return merged, true
}

// parseKeyFields returns the members that identify a list element.
func parseKeyFields(path string) object {
	literal, isKey := strings.CutPrefix(path, "k:")
	var keys object
	if !isKey || kjson.Unmarshal([]byte(literal), &keys) != nil {
		return nil
	}
	return keys
}

// matchesPathElement reports whether path means this list element.
func matchesPathElement(element any, path string) bool {
	if literal, isValue := strings.CutPrefix(path, "v:"); isValue {
		var value any
		return kjson.Unmarshal([]byte(literal), &value) == nil && equalScalar(value, element)
	}
	o, isObject := element.(object)
	keys := parseKeyFields(path)
	if !isObject || len(keys) == 0 {
		return false
	}
	for name, value := range keys {
		if !equalScalar(o[name], value) {
			return false
		}
	}
	return true
}

func findElement(list []any, path string) (any, bool) {
	i := slices.IndexFunc(list, func(element any) bool { return matchesPathElement(element, path) })
	if i < 0 {
		return nil, false
	}
	return list[i], true
}

// findManifestElement returns the index of the element that path means in a list of a manifest, -1
// for none. The element may lack keys that have a default, for example the protocol of a port.
func findManifestElement(list []any, path string) int {
	keys := parseKeyFields(path)
	return slices.IndexFunc(list, func(element any) bool {
		o, isObject := element.(object)
		if !isObject {
			return matchesPathElement(element, path)
		}
		matched := false
		for name, value := range keys {
			if actual, exists := o[name]; exists && !equalScalar(actual, value) {
				return false
			} else if exists {
				matched = true
			}
		}
		return matched
	})
}

// scalar returns v if it can be compared by ==, otherwise nil.
func scalar(v any) any {
	switch v.(type) {
	case string, bool, int64, float64:
		return v
	}
	return nil
}

func equalScalar(a, b any) bool { return scalar(a) != nil && scalar(a) == scalar(b) }
