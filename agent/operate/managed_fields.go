package operate

import (
	"maps"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"
)

// pickFields returns the part of a value that fields name and others do not, and whether there
// is any. A name begins with f: for a member, k: for the element of a list that has these members,
// v: for the element that is this value. What names nothing below it is whole.
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

// isLeaf reports whether fields name a value as a whole.
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
		maps.Copy(merged, pickedValue.(object)) // of an object it is one
	}
	maps.Copy(merged, parseKeyFields(path)) // a merge needs them, owned or not
	return merged, true
}

// parseKeyFields are the members that make the element of a list known.
func parseKeyFields(path string) object {
	literal, isKey := strings.CutPrefix(path, "k:")
	var keys object
	if !isKey || kjson.Unmarshal([]byte(literal), &keys) != nil {
		return nil
	}
	return keys
}

// matchesPathElement reports whether an element of a list is the one that a path means.
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

// findManifestElement finds the element of a manifest's list that a path means; -1 for none. It may
// leave out members that have a default, as the protocol of a port.
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

// scalar returns a value that can be compared, nil for others.
func scalar(v any) any {
	switch v.(type) {
	case string, bool, int64, float64:
		return v
	}
	return nil
}

func equalScalar(a, b any) bool { return scalar(a) != nil && scalar(a) == scalar(b) }
