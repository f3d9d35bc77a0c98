package store

import (
	"sync"

	"github.com/vedette-io/vedette"
)

// changeLog remembers which objects changed last. Caches of many objects read only those again.
// The zero value is ready to use.
type changeLog struct {
	mu      sync.Mutex
	entries []changedObject // a ring: entry n is at n modulo its length
	last    uint64          // number of entries that were ever added
	floor   uint64          // changes up to this one are forgotten
}

// changedObject is an object that changed, and its application before or after the change.
type changedObject struct {
	rowKey
	account     vedette.AccountName
	application string
}

// changeLogSize bounds the memory of the log to about 10 MB. At 1,000 changes per second it
// reaches back half a minute.
const changeLogSize = 32_768

func (l *changeLog) note(changed []changedObject) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range changed {
		if len(l.entries) < changeLogSize {
			l.entries = append(l.entries, c)
		} else {
			l.entries[l.last%changeLogSize] = c
		}
		l.last++
	}
	if l.last > changeLogSize {
		l.floor = max(l.floor, l.last-changeLogSize)
	}
}

// forget is note for objects that are too many to name. It empties the log.
func (l *changeLog) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	l.entries, l.last, l.floor = nil, roundUp(l.last), roundUp(l.last)
}

// roundUp returns the next position that is at the beginning of the ring.
func roundUp(position uint64) uint64 {
	return (position + changeLogSize - 1) / changeLogSize * changeLogSize
}

// since calls visit with all changes after a mark, and returns the mark of the last one. It returns
// false if it has forgotten some.
func (l *changeLog) since(mark uint64, visit func(changedObject)) (now uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mark < l.floor {
		return l.last, false
	}
	for at := mark; at < l.last; at++ {
		visit(l.entries[at%changeLogSize])
	}
	return l.last, true
}

func (l *changeLog) now() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// ObjectRef names an object. Application is one that it belongs to, or did before.
type ObjectRef struct {
	vedette.Key
	Account     vedette.AccountName
	Application string
}

// ChangeMark returns the mark for a later call of ChangedObjects. A reader must ask for it
// before it reads the objects.
func (s *Store) ChangeMark() uint64 {
	s.versions.settleOld()
	return s.versions.changes.now()
}

// ChangedObjects calls visit with the objects that have changed since a mark, or may have, and
// returns the mark for the next call. It returns false if it does not know all of them. A change
// is known before the versions of its application and its namespace change. visit must not block.
func (s *Store) ChangedObjects(since uint64, visit func(ObjectRef)) (now uint64, ok bool) {
	s.versions.settleOld()
	kinds, known := s.kinds.cached(), true
	now, ok = s.versions.changes.since(since, func(c changedObject) {
		kind, isKnown := kinds[c.kindID]
		known = known && isKnown
		visit(ObjectRef{vedette.Key{Kind: kind, Namespace: c.namespace, Name: c.name}, c.account, c.application})
	})
	return now, ok && known
}
