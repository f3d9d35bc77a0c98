package operate

import (
	"context"
	"maps"
)

// preconditionFields are what a manifest says of one object, and one version of it, as those do that
// were read from a cluster. No other object has that uid, and a new one no version
// yet, so that they stand against a creation only.
var preconditionFields = []string{"resourceVersion", "uid"}

// hasPreconditions reports whether a manifest means one object only.
func (m manifest) hasPreconditions() bool {
	for _, name := range preconditionFields {
		if m.meta()[name] != nil {
			return true
		}
	}
	return false
}

func (m manifest) clearPreconditions() {
	for _, name := range preconditionFields {
		delete(m.meta(), name)
	}
}

// withoutPreconditions is a copy of an object for whatever version and uid.
func withoutPreconditions(tree object) object {
	m := manifest{object: maps.Clone(tree)}
	m.object["metadata"] = maps.Clone(m.meta())
	m.clearPreconditions()
	return m.object
}

// clearPreconditionsIfMissing unpins a manifest whose object is not there, so that it is created.
// Where that can't be found out, the next request tells why.
func (r *run) clearPreconditionsIfMissing(ctx context.Context, p resourcePath, m manifest) {
	if !m.hasPreconditions() {
		return
	}
	if _, _, err := r.do(ctx, p, request{accept: withFullObjectFallback(p, acceptMetadata)}); isNotFound(err) {
		m.clearPreconditions()
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
