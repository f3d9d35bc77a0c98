package operate

import (
	"encoding/json"
	"strings"
)

// appliedBy picks from an object what a manager's server-side applies said, by
// the managed fields. It is empty where the manager applied nothing. kubectl
// lacks this: its client-side apply leaves behind what a server-side apply
// wrote and the manifest no longer says.
func appliedBy(tree object, manager string) object {
	entries, _ := dig(tree, "metadata", "managedFields").([]any)
	for _, entry := range entries {
		if text(entry, "manager") != manager || text(entry, "operation") != "Apply" || text(entry, "subresource") != "" {
			continue
		}
		fields, _ := dig(entry, "fieldsV1").(object)
		if picked, ok := pick(tree, fields).(object); ok {
			return picked
		}
	}
	return object{}
}

// pick returns the part of a value that fields name; nil for none. A name begins
// with f: for a member, k: for the element of a list that has these members, v:
// for the element that is this value. What names nothing below it is whole.
func pick(value any, fields object) any {
	if leaf(fields) {
		return value
	}
	switch v := value.(type) {
	case object:
		return pickMembers(v, fields)
	case []any:
		return pickElements(v, fields)
	}
	return value
}

// leaf reports whether fields name a value as a whole.
func leaf(fields object) bool {
	_, self := fields["."]
	return len(fields) == 0 || len(fields) == 1 && self
}

func pickMembers(o, fields object) any {
	picked := object{}
	for path, below := range fields {
		name, isMember := strings.CutPrefix(path, "f:")
		value, there := o[name]
		if !isMember || !there {
			continue
		}
		inner, _ := below.(object)
		if part := pick(value, inner); part != nil {
			picked[name] = part
		}
	}
	return picked
}

// pickElements keeps the order of the list.
func pickElements(list []any, fields object) any {
	picked := []any{}
	for _, element := range list {
		for path, below := range fields {
			inner, _ := below.(object)
			if part, is := pickElement(element, path, inner); is {
				picked = append(picked, part)
				break
			}
		}
	}
	return picked
}

func pickElement(element any, path string, below object) (any, bool) {
	if literal, is := strings.CutPrefix(path, "v:"); is {
		var value any
		return element, json.Unmarshal([]byte(literal), &value) == nil && value == scalar(element)
	}
	literal, is := strings.CutPrefix(path, "k:")
	o, isObject := element.(object)
	var keys object
	if !is || !isObject || json.Unmarshal([]byte(literal), &keys) != nil {
		return nil, false
	}
	for name, value := range keys {
		if !equalScalar(o[name], value) {
			return nil, false
		}
	}
	part, isObject := pick(o, below).(object)
	if !isObject {
		return nil, false
	}
	merged := object{}
	for name, value := range part {
		merged[name] = value
	}
	for name, value := range keys { // a merge needs them, owned or not
		merged[name] = value
	}
	return merged, true
}

// scalar returns a value that can be compared, nil for others.
func scalar(v any) any {
	switch v.(type) {
	case string, bool, float64:
		return v
	}
	return nil
}

func equalScalar(a, b any) bool { return scalar(a) != nil && scalar(a) == scalar(b) }
