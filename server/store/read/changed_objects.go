package read

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/versions"
)

// ObjectRef names an object. Application is one that it belongs to, or did before.
type ObjectRef struct {
	vedette.Key
	Account     vedette.AccountName
	Application string
}

// ChangedObjects calls visit with the objects that have changed since a mark, or may have, and
// returns the mark for the next call. It returns false if it does not know all of them. A change
// is known before the versions of its application and its namespace change. visit must not block.
func (r *Reader) ChangedObjects(since uint64, visit func(ObjectRef)) (now uint64, ok bool) {
	r.versions.Refresh()
	kinds, known := r.kinds.Cached(), true
	now, ok = r.versions.Changes.Since(since, func(c versions.ChangedObject) {
		kind, isKnown := kinds[c.KindID]
		known = known && isKnown
		visit(ObjectRef{vedette.Key{Kind: kind, Namespace: c.Namespace, Name: c.Name}, c.Account, c.Application})
	})
	return now, ok && known
}
