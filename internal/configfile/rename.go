package configfile

import "strings"

// Rename makes a path mean another one, for keys that other products gave a
// different place: {"kubesvc.grpc.server", "grpc.server"}. Both may be in use
// in one file; a setting that is given under both is reported as given twice.
type Rename struct{ From, To string }

// apply takes all values at From out of the tree and hangs them in at the root
// under To, as a dotted key. Positions stay those of the file.
func (r Rename) apply(root *node) {
	for _, f := range root.removePath(r.From) {
		f.key = r.To
		root.fields = append(root.fields, f)
	}
}

// removePath removes the fields at a path, which may be nested or dotted in any mix,
// and returns them. A group that is empty then goes too.
func (n *node) removePath(path string) (removed []field) {
	if n.kind != mappingNode {
		return nil
	}
	var kept []field
	for _, f := range n.fields {
		rest, matches := cutFold(path, f.key)
		switch {
		case !matches:
			if extended, extends := cutFold(f.key, path); extends && extended != "" {
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

// cutFold takes a leading key and the dot that follows it off a path, in any
// case. It reports false where the path does not start with the key.
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
