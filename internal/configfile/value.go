package configfile

import "slices"

// Unmarshaler is implemented by types that decode a value themselves, because they accept several
// forms.
type Unmarshaler interface {
	UnmarshalConfig(v Value)
}

// Value is the value at one place in a file.
type Value struct {
	decoder  *decoder
	node     *node
	location location
}

// Field is one key of a group and its value.
type Field struct {
	Key   string
	Value Value
}

// AddProblem reports a problem with the value.
func (v Value) AddProblem(format string, args ...any) {
	v.decoder.report.Add(v.node.at, v.location.path, format, args...)
}

// Path returns the path of the value, for example "kubernetes.accounts[0].permissions".
func (v Value) Path() string { return v.location.path }

// String returns the kind of the value: "a list", "a group of keys", "a single value" or "nothing".
func (v Value) String() string { return v.node.String() }

// Items returns the entries of a list; false if the value is not a list.
func (v Value) Items() ([]Value, bool) {
	items := make([]Value, len(v.node.items))
	for i, n := range v.node.items {
		items[i] = Value{v.decoder, n, v.location.item(i)}
	}
	return items, v.node.kind == listNode
}

// Fields returns the keys of a group in the order of the file; false if the value is not a group.
// Keys that are set twice are reported and returned once.
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

// HasEntries reports whether a key of a group holds a list with entries. Unlike
// Fields it reports no problems, because other products decide what may be in
// their groups.
func (v Value) HasEntries(key string) bool {
	return slices.ContainsFunc(v.node.fields, func(f field) bool { return f.key == key && len(f.value.items) > 0 })
}

// Text returns a single value with its placeholders expanded. It returns false if the value is not
// a single one, or if expanding failed, which it reports.
func (v Value) Text() (string, bool) {
	if v.node.kind != scalarNode {
		return "", false
	}
	text, ok := v.decoder.expandText(v.location, v.node)
	return text, ok && v.decoder.isUTF8(v.location, v.node, text)
}

// Ignored accepts any value and keeps none of it. It is for groups of other
// products' keys that have no effect here.
type Ignored struct {
	on bool // something in the group is switched on, so that it differs from its default
}

// String returns a placeholder, because the group may hold secrets.
func (Ignored) String() string { return "(not shown)" }

// UnmarshalConfig accepts everything.
func (i *Ignored) UnmarshalConfig(v Value) { i.on = v.node.isOn() }

// isOn reports whether a value sets anything: generated files are full of groups
// like "bitbucket: {enabled: false, accounts: []}".
func (n *node) isOn() bool {
	for _, f := range n.fields {
		if f.key == "enabled" && f.value.kind == scalarNode {
			return f.value.text != "false"
		}
	}
	switch n.kind {
	case mappingNode:
		return slices.ContainsFunc(n.fields, func(f field) bool { return f.value.isOn() })
	case listNode:
		return len(n.items) > 0
	}
	return n.kind == scalarNode
}
