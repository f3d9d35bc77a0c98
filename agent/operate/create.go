package operate

import (
	"context"
	"maps"
)

// pins are what a manifest says of one object, and one version of it, as those do that
// were read from a cluster. No other object has that uid, and a new one no version
// yet, so that they stand against a creation only.
var pins = []string{"resourceVersion", "uid"}

// pinned reports whether a manifest means one object only.
func (m manifest) pinned() bool {
	for _, name := range pins {
		if m.meta()[name] != nil {
			return true
		}
	}
	return false
}

func (m manifest) unpin() {
	for _, name := range pins {
		delete(m.meta(), name)
	}
}

// unpinned is a copy of an object for whatever version and uid.
func unpinned(tree object) object {
	m := manifest{object: maps.Clone(tree)}
	m.object["metadata"] = maps.Clone(m.meta())
	m.unpin()
	return m.object
}

// unpinMissing unpins a manifest whose object is not there, so that it is created.
// Where that can't be found out, the next request tells why.
func (o *Operator) unpinMissing(ctx context.Context, p place, m manifest) {
	if !m.pinned() {
		return
	}
	if _, _, err := o.do(ctx, p, call{accept: orWhole(p, metadataOnly)}); missing(err) {
		m.unpin()
	}
}

// withoutNulls is a copy of a value without the members that are null. Elements of
// lists stay: each has its place.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case object:
		kept := make(object, len(v))
		for name, member := range v {
			if member != nil {
				kept[name] = withoutNulls(member)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i, element := range v {
			kept[i] = withoutNulls(element)
		}
		return kept
	}
	return v
}
