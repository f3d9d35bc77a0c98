package configfile

import "strings"

// Rename renames a path, for keys that have another place in other products:
// {"kubesvc.grpc.server", "grpc.server"}. A file may use both, and a setting that is given under
// both is reported as set twice.
type Rename struct {
	From, To string
	// Unit is added to a number, for keys whose unit differs: "ms" for a duration that the other
	// product writes as a number of milliseconds.
	Unit string
}

// apply moves all values at From to the root of the tree under the dotted key To. Positions do not
// change.
func (r Rename) apply(root *node) {
	for _, f := range root.removePath(r.From) {
		f.key = r.To
		f.value = f.value.withUnit(r.Unit)
		root.fields = append(root.fields, f)
	}
}

// withUnit returns a single value with a unit. A value that is not a number stays as it is, so that
// the message about it shows what the user wrote.
func (n *node) withUnit(unit string) *node {
	if unit == "" || n.kind != scalarNode || strings.TrimRight(n.text, "0123456789}") == n.text {
		return n
	}
	copied := *n
	copied.text += unit
	return &copied
}

// removePath removes and returns the fields at a path, whose keys may be nested or dotted in any
// mix, and in any notation. It also removes groups that become empty.
func (n *node) removePath(path string) (removed []field) {
	if n.kind != mappingNode {
		return nil
	}
	var kept []field
	for _, f := range n.fields {
		rest, matches := cutRelaxed(path, f.key)
		switch {
		case !matches:
			if extended, extends := cutRelaxed(f.key, path); extends && extended != "" {
				f.value = &node{kind: mappingNode, at: f.at, fields: []field{{key: extended, at: f.at, value: f.value}}}
				removed = append(removed, f)
				continue
			}
			kept = append(kept, f)
		case rest == "":
			removed = append(removed, f)
		default:
			nested := f.value.removePath(rest)
			removed = append(removed, nested...)
			if len(nested) == 0 || len(f.value.fields) > 0 {
				kept = append(kept, f)
			}
		}
	}
	n.fields = kept
	return removed
}

// cutFold removes a leading key and the dot after it from a path, ignoring case. It reports false
// if the path does not start with the key.
func cutFold(path, key string) (rest string, ok bool) {
	if len(path) < len(key) || !strings.EqualFold(path[:len(key)], key) {
		return "", false
	}
	if len(path) == len(key) {
		return "", true
	}
	if path[len(key)] != '.' {
		return "", false
	}
	return path[len(key)+1:], true
}
