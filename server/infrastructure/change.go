package infrastructure

import (
	"context"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/read"
)

// An application with thousands of Pods changes all the time, but only a few of its objects do at
// once. So a cached application is brought up to date by reading the objects that have changed.
// Changes of other kinds than those handled here are rare: then all is read again.

// changeStore knows which objects have changed.
type changeStore interface {
	ChangeMark() uint64
	ChangedObjects(since uint64, visit func(read.ObjectRef)) (now uint64, ok bool)
	AttributesOf(ctx context.Context, objects []read.ObjectRef) ([]read.AttributesRow, error)
}

// maxChangedObjects is how many objects are read by name. Reading thousands by name takes as long as
// reading all.
const maxChangedObjects = 256

// readChanges returns the application after all changes since it was read, or nil if it must be
// read anew. It is previous itself if nothing in it has changed.
func (r *Reader) readChanges(ctx context.Context, previous *CachedApplication) (*CachedApplication, error) {
	before := previous.state.Load()
	settings, err := r.Settings(ctx)
	if err != nil || previous.isSparse() || !before.settings.sameViewsOf(settings, before.versions.namespaces) {
		return nil, err
	}
	after := &state{began: r.order.Add(1), settings: settings, versions: before.versions.now(r.cfg.Store)} // the versions before the changes
	refs, mark, ok := r.changesOf(previous.Name, before)
	if !ok {
		return nil, nil
	}
	after.mark = mark
	changed, err := r.readObjects(ctx, refs)
	if err != nil {
		return nil, err
	}
	rows, effect := previous.rows.after(changed, previous.Name)
	switch effect {
	case changesNothing:
		previous.state.Store(after)
		return previous, nil
	case changesRows:
		s := r.build(previous.Name, rows, after)
		s.rowBytes, s.wholeBytes = previous.rowBytes, previous.wholeBytes
		return s, nil
	default:
		return nil, nil
	}
}

// changesOf returns the objects that have changed since a state and that may matter to the
// application. It returns false if they are unknown or too many.
func (r *Reader) changesOf(name string, since *state) (refs []read.ObjectRef, now uint64, ok bool) {
	seen := map[objectKey]bool{}
	now, ok = r.cfg.Store.ChangedObjects(since.mark, func(o read.ObjectRef) {
		key := objectKey{o.Account, o.Key}
		_, inNamespace := since.versions.namespaces[namespaceKey{o.Account, o.Namespace}]
		isPod := o.Kind == InstanceKinds[0]
		if seen[key] || !isPod && !slices.Contains(LogicalKinds, o.Kind) || !inNamespace && (isPod || o.Application != name) {
			return
		}
		if len(refs) <= maxChangedObjects {
			seen[key] = true
			refs = append(refs, o)
		}
	})
	return refs, now, ok && len(refs) <= maxChangedObjects
}

type objectKey struct {
	account vedette.AccountName
	vedette.Key
}

func keyOf(o *Object) objectKey { return objectKey{o.Account, o.Key} }

// readObjects reads objects by name. Those that do not exist any more are nil.
func (r *Reader) readObjects(ctx context.Context, refs []read.ObjectRef) (map[objectKey]*Object, error) {
	changed := make(map[objectKey]*Object, len(refs))
	var pods, others []read.ObjectRef // Pods have their labels if nothing else is read with them
	for _, ref := range refs {
		changed[objectKey{ref.Account, ref.Key}] = nil
		if ref.Kind == InstanceKinds[0] {
			pods = append(pods, ref)
		} else {
			others = append(others, ref)
		}
	}
	for _, list := range [][]read.ObjectRef{pods, others} {
		if len(list) == 0 {
			continue
		}
		rows, err := r.cfg.Store.AttributesOf(ctx, list)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			o := rows[i] // the rest of the rows can be released before it
			changed[keyOf(&o)] = &o
		}
	}
	return changed, nil
}
