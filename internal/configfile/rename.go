package configfile

import "strings"

// Rename makes a path mean another one, for keys that other products gave a
// different place: {"kubesvc.grpc.server", "grpc.server"}. Both may be in use
// in one file; a setting that is given under both is reported as given twice.
type Rename struct{ From, To string }

// apply takes all values at From out of the tree and hangs them in at the root
// under To, as a dotted key. Positions stay those of the file.
func (r Rename) apply(root *node) {
	for _, f := range root.take(r.From) {
		f.key = r.To
		root.fields = append(root.fields, f)
	}
}

// take removes the fields at a path, which may be nested or dotted in any mix,
// and returns them. A group that is empty then goes too.
func (n *node) take(path string) (taken []field) {
	if n.shape != mapping {
		return nil
	}
	var kept []field
	for _, f := range n.fields {
		rest, below := cutFold(path, f.key)
		switch {
		case !below:
			if extended, above := cutFold(f.key, path); above && extended != "" {
				f.value = &node{shape: mapping, at: f.at, fields: []field{{key: extended, at: f.at, value: f.value}}}
				taken = append(taken, f)
				continue
			}
			kept = append(kept, f)
		case rest == "":
			taken = append(taken, f)
		default:
			found := f.value.take(rest)
			taken = append(taken, found...)
			if len(found) == 0 || len(f.value.fields) > 0 {
				kept = append(kept, f)
			}
		}
	}
	n.fields = kept
	return taken
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
