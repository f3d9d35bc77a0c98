package manifest

import "maps"

// preconditionFields restrict a manifest to one object or to one version of it. Manifests that
// were read from a cluster have them. They only prevent a creation: a new object gets another
// uid, and has no version yet.
var preconditionFields = []string{"resourceVersion", "uid"}

// HasPreconditions reports whether the manifest is restricted to one object or version.
func (m Manifest) HasPreconditions() bool {
	for _, name := range preconditionFields {
		if m.Meta()[name] != nil {
			return true
		}
	}
	return false
}

// ClearPreconditions removes uid and resourceVersion.
func (m Manifest) ClearPreconditions() {
	for _, name := range preconditionFields {
		delete(m.Meta(), name)
	}
}

// WithoutPreconditions returns a copy without uid and resourceVersion. All but the metadata is
// shared.
func (m Manifest) WithoutPreconditions() Manifest {
	m.Object = maps.Clone(m.Object)
	m.Object["metadata"] = maps.Clone(m.Meta())
	m.ClearPreconditions()
	return m
}
