package store

import (
	"maps"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// overlays are what operations found out about the objects of all accounts that this
// process writes. What is read of one account holds as long as its gate is held;
// the mutex is for the maps.
//
// They are kept in memory alone. When a server dies, or an account moves to
// another one, its next writer goes on from the stored marks: objects may show for
// a moment as they were before an operation, until the feed tells that too.
type overlays struct {
	mu       sync.Mutex
	accounts map[vedette.AccountName]*overlay
}

// overlay is what one account's floors and tombs stand on.
type overlay struct {
	observations
	snapshots      map[vedette.Feed]*feedSnapshot
	disconnectedAt time.Time // since when no agent has reported it to this process; zero while one does
}

func (o *overlays) getOrCreateLocked(account vedette.AccountName) *overlay {
	if o.accounts == nil {
		o.accounts = map[vedette.AccountName]*overlay{}
	}
	ov := o.accounts[account]
	if ov == nil {
		ov = &overlay{observations{map[vedette.Key]versionFloor{}, map[string]tombstone{}}, map[vedette.Feed]*feedSnapshot{}, time.Time{}}
		o.accounts[account] = ov
	}
	return ov
}

// clone returns a copy of what is known of an account; empty where nothing is.
func (o *overlays) clone(account vedette.AccountName) observations {
	o.mu.Lock()
	defer o.mu.Unlock()
	ov := o.accounts[account]
	if ov == nil || ov.isEmpty() {
		return observations{}
	}
	return observations{maps.Clone(ov.floors), maps.Clone(ov.tombstones)}
}

// update makes what is known of an account what a batch left of it, now that it
// is stored.
func (o *overlays) update(account vedette.AccountName, s *staleFilter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ov := o.accounts[account]
	if ov == nil {
		return
	}
	ov.disconnectedAt = time.Time{}
	if s.floors != nil {
		ov.observations = s.observations
	}
	for _, feed := range s.endedSnapshots {
		delete(ov.snapshots, feed)
	}
	o.removeIfEmptyLocked(account, ov)
}

func (o *overlays) removeIfEmptyLocked(account vedette.AccountName, ov *overlay) {
	if ov.isEmpty() && len(ov.snapshots) == 0 {
		delete(o.accounts, account)
	}
}

// setFloor keeps a floor.
func (o *overlays) setFloor(account vedette.AccountName, key vedette.Key, floor versionFloor) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expireLocked(time.Now())
	o.getOrCreateLocked(account).floors[key] = floor
}

// addTombstone keeps a tomb.
func (o *overlays) addTombstone(account vedette.AccountName, uid string, added tombstone) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expireLocked(added.createdAt)
	o.getOrCreateLocked(account).tombstones[uid] = added
}

// objectState returns what is known here of an object and a uid; its row and its feed's mark
// are in the database.
func (o *overlays) objectState(account vedette.AccountName, key vedette.Key, uid string) *objectState {
	o.mu.Lock()
	defer o.mu.Unlock()
	state := &objectState{key: key}
	ov := o.accounts[account]
	if ov == nil {
		return state
	}
	if floor, ok := ov.floors[key]; ok {
		state.floor = &floor
	}
	for feed, snapshot := range ov.snapshots {
		if covers(feed, key) {
			copied := *snapshot
			state.snapshot = &copied
		}
	}
	_, state.deleted = ov.tombstones[uid]
	return state
}

// beginSnapshot notes that a feed's snapshot starts. One that starts over has no mark,
// and goes on from where the first did.
func (o *overlays) beginSnapshot(account vedette.AccountName, feed vedette.Feed, mark vedette.Mark) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ov := o.getOrCreateLocked(account)
	if previous := ov.snapshots[feed]; previous != nil && mark == "" {
		mark = previous.previousMark
	}
	ov.snapshots[feed], ov.disconnectedAt = &feedSnapshot{previousMark: mark}, time.Time{}
}

// recordIndexed notes rows of a snapshot's index. The first ones open the question anew
// what the snapshot makes of the objects that have floors.
func (o *overlays) recordIndexed(account vedette.AccountName, feed vedette.Feed, first bool, rows []indexRow) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ov := o.getOrCreateLocked(account)
	snapshot := ov.snapshots[feed]
	if snapshot == nil {
		snapshot = &feedSnapshot{}
		ov.snapshots[feed] = snapshot
	}
	snapshot.indexStarted, snapshot.indexDone = true, len(rows) < indexChunkSize
	if len(rows) > 0 {
		snapshot.lastIndexed = rows[len(rows)-1]
	}
	if first {
		ov.resetConflicts(feed)
	}
}

// resetConflicts forgets what was said of a feed's objects.
func (k observations) resetConflicts(feed vedette.Feed) {
	for key, f := range k.floors {
		if covers(feed, key) {
			f.conflict = conflict{}
			k.floors[key] = f
		}
	}
	for uid, t := range k.tombstones {
		if covers(feed, t.key) {
			t.conflict = conflict{}
			k.tombstones[uid] = t
		}
	}
}

// prune forgets the floors of objects that no feed of an account tells any more.
func (o *overlays) prune(account vedette.AccountName, isCovered func(vedette.Key) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ov := o.accounts[account]
	if ov == nil {
		return
	}
	maps.DeleteFunc(ov.floors, func(key vedette.Key, _ versionFloor) bool { return !isCovered(key) })
	maps.DeleteFunc(ov.tombstones, func(_ string, t tombstone) bool { return !isCovered(t.key) })
	maps.DeleteFunc(ov.snapshots, func(feed vedette.Feed, _ *feedSnapshot) bool {
		return !isCovered(vedette.Key{Kind: feed.Kind, Namespace: feed.Namespace})
	})
	o.removeIfEmptyLocked(account, ov)
}

// forget drops all that is known of an account.
func (o *overlays) forget(account vedette.AccountName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.accounts, account)
}

// markDisconnected notes that an account's agent has left this process. It may come back at
// once and go on where it was, for which the floors are kept.
func (o *overlays) markDisconnected(account vedette.AccountName, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ov := o.accounts[account]; ov != nil {
		ov.disconnectedAt = now
	}
}

// expireLocked drops what is kept of accounts whose agents did not come back. A
// snapshot that they left unfinished is begun anew wherever they are now.
func (o *overlays) expireLocked(now time.Time) {
	maps.DeleteFunc(o.accounts, func(_ vedette.AccountName, ov *overlay) bool {
		return !ov.disconnectedAt.IsZero() && now.Sub(ov.disconnectedAt) >= tombstoneTTL
	})
}
