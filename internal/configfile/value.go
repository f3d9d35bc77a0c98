package configfile

// Unmarshaler is a type that reads a value of several forms by itself.
type Unmarshaler interface {
	UnmarshalConfig(v Value)
}

// Value is what stands at one place of a file.
type Value struct {
	decoder  *decoder
	node     *node
	location location
}

// Field is one key of a group and what stands there.
type Field struct {
	Key   string
	Value Value
}

// AddProblem reports a problem with the value.
func (v Value) AddProblem(format string, args ...any) {
	v.decoder.report.Add(v.node.at, v.location.path, format, args...)
}

// Path is where the value stands, "kubernetes.accounts[0].permissions".
func (v Value) Path() string { return v.location.path }

// String names what stands there: "a list", "a group of keys", "a single
// value" or "nothing".
func (v Value) String() string { return v.node.String() }

// Items returns the entries of a list; false where it is none.
func (v Value) Items() ([]Value, bool) {
	items := make([]Value, len(v.node.items))
	for i, n := range v.node.items {
		items[i] = Value{v.decoder, n, v.location.item(i)}
	}
	return items, v.node.kind == listNode
}

// Fields returns the keys of a group in the order of the file; false where it is
// none. Keys that are given twice are reported and come once.
func (v Value) Fields() ([]Field, bool) {
	var fields []Field
	seen := map[string]Position{}
	for _, f := range v.node.fields {
		location := v.location.withKey(f.key)
		if previous, ok := seen[f.key]; ok {
			v.decoder.reportDuplicate(location.path, f.at, previous)
			continue
		}
		seen[f.key] = f.at
		fields = append(fields, Field{f.key, Value{v.decoder, f.value, location}})
	}
	return fields, v.node.kind == mappingNode
}

// Text returns a single value with placeholders filled in; false where it is
// none, or where they could not be filled in, which is then reported.
func (v Value) Text() (string, bool) {
	if v.node.kind != scalarNode {
		return "", false
	}
	return v.decoder.expandText(v.location, v.node)
}

// Ignored takes whatever stands there and keeps nothing of it. It is for groups of
// other products' keys that have no effect here.
type Ignored struct{}

// String says that the keys are there and not shown: secrets may be among them.
func (Ignored) String() string { return "(not shown)" }

// UnmarshalConfig takes everything.
func (*Ignored) UnmarshalConfig(Value) {}
