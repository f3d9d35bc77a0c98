package versions

import (
	"sync"

	"github.com/vedette-io/vedette"
)

// changeLog remembers which objects changed last. Caches of many objects read only those again.
// The zero value is ready to use.
type changeLog struct {
	mu      sync.Mutex
	entries []ChangedObject // a ring: entry n is at n modulo its length
	last    uint64          // number of entries that were ever added
	floor   uint64          // changes up to this one are forgotten
}

// ChangedObject is an object that changed, and its application before or after the change.
type ChangedObject struct {
	KindID          int64
	Namespace, Name string
	Account         vedette.AccountName
	Application     string
}

// changeLogSize bounds the memory of the log to about 10 MB. At 1,000 changes per second it
// reaches back half a minute.
const changeLogSize = 32_768

func (l *changeLog) note(changed []ChangedObject) {
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
	l.last = roundUp(l.last + 1)
	l.floor = l.last
	l.entries = nil
}

// roundUp returns the next position that is at the beginning of the ring.
func roundUp(position uint64) uint64 {
	return (position + changeLogSize - 1) / changeLogSize * changeLogSize
}

// Since calls visit with all changes after a mark, and returns the mark of the last one. It returns
// false if it has forgotten some.
func (l *changeLog) Since(mark uint64, visit func(ChangedObject)) (now uint64, ok bool) {
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

// ChangeMark returns the mark for a later call of ChangedObjects. A reader must ask for it
// before it reads the objects.
func (v *Versions) ChangeMark() uint64 {
	v.Refresh()
	return v.Changes.now()
}
