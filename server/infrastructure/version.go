package infrastructure

import "github.com/vedette-io/vedette"

// versions are the counters of changes that an application depends on.
type versions struct {
	name        string
	application uint64
	namespaces  map[namespaceKey]uint64
}

type namespaceKey struct {
	account   vedette.AccountName
	namespace string
}

func newVersions(store versionStore, name string) versions {
	return versions{name: name, application: store.ApplicationVersion(name), namespaces: map[namespaceKey]uint64{}}
}

// addNamespaces adds the namespaces of an application's objects. All objects that relate to one
// are in its namespace, whatever their application is.
func (v *versions) addNamespaces(store versionStore, own []Object) {
	for i := range own {
		key := namespaceKey{own[i].Account, own[i].Namespace}
		if _, ok := v.namespaces[key]; !ok {
			v.namespaces[key] = store.NamespaceVersion(key.account, key.namespace)
		}
	}
}

// now returns the versions of the same application and namespaces as they are now.
func (v *versions) now(store versionStore) versions {
	next := newVersions(store, v.name)
	for key := range v.namespaces {
		next.namespaces[key] = store.NamespaceVersion(key.account, key.namespace)
	}
	return next
}

// isCurrent reports whether nothing has changed since the versions were read.
func (v *versions) isCurrent(store versionStore) bool {
	if v.application != store.ApplicationVersion(v.name) {
		return false
	}
	for key, version := range v.namespaces {
		if version != store.NamespaceVersion(key.account, key.namespace) {
			return false
		}
	}
	return true
}
