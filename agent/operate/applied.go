package operate

import (
	"maps"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"
)

// pick returns the part of a value that fields name and others do not, and whether there
// is any. A name begins with f: for a member, k: for the element of a list that has these members,
// v: for the element that is this value. What names nothing below it is whole.
func pick(value any, fields, others object) (any, bool) {
	if leaf(fields) {
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

// leaf reports whether fields name a value as a whole.
func leaf(fields object) bool {
	_, self := fields["."]
	return len(fields) == 0 || len(fields) == 1 && self
}

func pickMembers(o, fields, others object) object {
	picked := object{}
	for path, below := range fields {
		name, isMember := strings.CutPrefix(path, "f:")
		value, there := o[name]
		if !isMember || !there {
			continue
		}
		inner, _ := below.(object)
		theirs, _ := others[path].(object)
		if part, is := pick(value, inner, theirs); is {
			picked[name] = part
		}
	}
	return picked
}

// pickElements keeps the order of the list.
func pickElements(list []any, fields, others object) []any {
	picked := []any{}
	for _, element := range list {
		for path, below := range fields {
			inner, _ := below.(object)
			theirs, _ := others[path].(object)
			if part, is := pickElement(element, path, inner, theirs); is {
				picked = append(picked, part)
				break
			}
		}
	}
	return picked
}

func pickElement(element any, path string, below, others object) (any, bool) {
	if !isAt(element, path) {
		return nil, false
	}
	o, isObject := element.(object)
	if !isObject {
		return element, others == nil
	}
	merged := object{}
	if part, is := pick(o, below, others); is {
		maps.Copy(merged, part.(object)) // of an object it is one
	}
	maps.Copy(merged, keysOf(path)) // a merge needs them, owned or not
	return merged, true
}

// keysOf are the members that make the element of a list known.
func keysOf(path string) object {
	literal, is := strings.CutPrefix(path, "k:")
	var keys object
	if !is || kjson.Unmarshal([]byte(literal), &keys) != nil {
		return nil
	}
	return keys
}

// isAt reports whether an element of a list is the one that a path means.
func isAt(element any, path string) bool {
	if literal, is := strings.CutPrefix(path, "v:"); is {
		var value any
		return kjson.Unmarshal([]byte(literal), &value) == nil && equalScalar(value, element)
	}
	o, isObject := element.(object)
	keys := keysOf(path)
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

func elementAt(list []any, path string) (any, bool) {
	i := slices.IndexFunc(list, func(element any) bool { return isAt(element, path) })
	if i < 0 {
		return nil, false
	}
	return list[i], true
}

// indexOf finds the element of a manifest's list that a path means; -1 for none. It may
// leave out members that have a default, as the protocol of a port.
func indexOf(list []any, path string) int {
	keys := keysOf(path)
	return slices.IndexFunc(list, func(element any) bool {
		o, isObject := element.(object)
		if !isObject {
			return isAt(element, path)
		}
		named := false
		for name, value := range keys {
			if own, has := o[name]; has && !equalScalar(own, value) {
				return false
			} else if has {
				named = true
			}
		}
		return named
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
