package manifest

// Nested returns the value at a path of members, nil if one of them is missing.
func Nested(from any, path ...string) any {
	for _, name := range path {
		o, _ := from.(object)
		from = o[name]
	}
	return from
}

// NestedString returns the string at a path of members, empty if there is no string.
func NestedString(from any, path ...string) string {
	s, _ := Nested(from, path...).(string)
	return s
}

// Copy returns a deep copy of an object, an empty one if v is not an object.
func Copy(v any) map[string]any {
	o, _ := deepCopy(v).(object)
	if o == nil {
		return object{}
	}
	return o
}

func deepCopy(v any) any {
	switch v := v.(type) {
	case object:
		o := make(object, len(v))
		for name, member := range v {
			o[name] = deepCopy(member)
		}
		return o
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = deepCopy(element)
		}
		return list
	}
	return v
}

// WithoutNulls returns a copy of an object without the members that are null. Null elements of
// lists stay, because to remove them would change the index of the others.
func WithoutNulls(o map[string]any) map[string]any {
	kept := make(object, len(o))
	for name, member := range o {
		if member != nil {
			kept[name] = withoutNulls(member)
		}
	}
	return kept
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case object:
		return WithoutNulls(v)
	case []any:
		kept := make([]any, len(v))
		for i, element := range v {
			kept[i] = withoutNulls(element)
		}
		return kept
	}
	return v
}
