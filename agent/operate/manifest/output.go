package manifest

import (
	"slices"

	"github.com/vedette-io/vedette"
)

// removeAccount removes the annotation that output adds, also if it is a label, and reports whether it was
// there.
func removeAccount(meta object) (found bool) {
	for _, name := range []string{"annotations", "labels"} {
		values, _ := meta[name].(object)
		if _, exists := values[vedette.AccountAnnotation]; !exists {
			continue
		}
		found = true
		delete(values, vedette.AccountAnnotation)
		if len(values) == 0 {
			delete(meta, name)
		}
	}
	return found
}

// RemoveAccount removes the annotation that output adds from a merge patch. A null stays, because it removes the
// annotation from an object that has it.
func RemoveAccount(patch map[string]any) {
	meta, _ := patch["metadata"].(object)
	for _, name := range []string{"annotations", "labels"} {
		values, _ := meta[name].(object)
		if values[vedette.AccountAnnotation] != nil {
			delete(values, vedette.AccountAnnotation)
		}
	}
}

// WasRead reports whether the manifest was read from a cluster: it has what only a cluster or our output writes.
func (m Manifest) WasRead() bool { return m.IsOutput || m.HasPreconditions() }

// HasText reports whether a value in the tree is one of the texts.
func HasText(tree any, texts ...string) bool {
	switch v := tree.(type) {
	case object:
		for _, member := range v {
			if HasText(member, texts...) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(element any) bool { return HasText(element, texts...) })
	case string:
		return slices.Contains(texts, v)
	}
	return false
}
