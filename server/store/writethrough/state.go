package writethrough

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// State holds what operations found out about the objects of all accounts that this
// process writes. The caller holds the account's lock from each call until it has acted on its
// result; the mutex only protects the maps. The zero value is ready to use.
//
// If a server dies, or an account moves to another server, the next writer continues from the stored marks. Filter derives the
// floors that it needs from the objects that are stored in a newer version, and the caller adds the
// stored tombstones with AddTombstones.
type State struct {
	mu       sync.Mutex
	accounts map[vedette.AccountName]*account
	informed map[vedette.AccountName]vedette.Term // since which term all tombstones of an account are known
	// unordered are feeds whose marks have gone back without a snapshot, as of an API server that does not keep its objects and counts
	// anew. A version that is newer than such a mark says nothing.
	unordered map[vedette.AccountName]map[vedette.Feed]bool
}

type account struct {
	operationWrites
	snapshots      map[vedette.Feed]*snapshot
	disconnectedAt time.Time // zero while an agent reports the account to this process
}

// operationWrites is what operations found out about an account's objects.
type operationWrites struct {
	floors     map[vedette.Key]floor
	tombstones map[string]tombstone // by uid
}

func (f operationWrites) isEmpty() bool { return len(f.floors) == 0 && len(f.tombstones) == 0 }

func (s *State) getOrCreateLocked(name vedette.AccountName) *account {
	if s.accounts == nil {
		s.accounts = map[vedette.AccountName]*account{}
	}
	a := s.accounts[name]
	if a == nil {
		a = &account{operationWrites{map[vedette.Key]floor{}, map[string]tombstone{}}, map[vedette.Feed]*snapshot{}, time.Time{}}
		s.accounts[name] = a
	}
	return a
}

func (s *State) removeIfEmptyLocked(name vedette.AccountName, a *account) {
	if a.isEmpty() && len(a.snapshots) == 0 {
		delete(s.accounts, name)
	}
}

// Stored is what the database holds when an operation reports an object.
type Stored struct {
	Exists  bool         // whether an object is stored under the key
	Version string       // its resourceVersion; empty if the feed must report it again
	Mark    vedette.Mark // of the object's feed; empty if it has none, for example during a snapshot
	// PreviousMark is the mark of the feed before a snapshot that has not ended; empty if there was none.
	PreviousMark vedette.Mark
}

// Write reports whether to store an object as an operation's result shows it. If the feed may
// still report older versions, it records a floor, before the object is stored: the
// floor is true of the cluster whatever becomes of the transaction.
func (s *State) Write(name vedette.AccountName, object *vedette.Object, stored Stored) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.stateLocked(name, object.Key, object.UID)
	state.Stored = stored
	write, newFloor := state.decideWrite(object)
	if newFloor != nil {
		s.expireLocked(time.Now())
		s.getOrCreateLocked(name).floors[object.Key] = *newFloor
	}
	return write
}

// Remove records that the object with a uid is gone.
func (s *State) Remove(name vedette.AccountName, key vedette.Key, uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.expireLocked(now)
	s.getOrCreateLocked(name).tombstones[uid] = tombstone{key: key, createdAt: now}
}

// RemoveAbsent reports whether to remove what is stored of an object that an operation found gone. If the feed may still report
// what was before, it records a floor.
func (s *State) RemoveAbsent(name vedette.AccountName, absent vedette.Absence, stored Stored) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.stateLocked(name, absent.Key, "")
	state.Stored = stored
	remove, newFloor := state.decideAbsence(absent.Version, time.Now())
	if newFloor != nil {
		s.expireLocked(time.Now())
		s.getOrCreateLocked(name).floors[absent.Key] = *newFloor
	}
	return remove
}

func (s *State) stateLocked(name vedette.AccountName, key vedette.Key, uid string) objectState {
	state := objectState{key: key}
	a := s.accounts[name]
	if a == nil {
		return state
	}
	if f, ok := a.floors[key]; ok {
		state.floor = &f
	}
	for feed, s := range a.snapshots {
		if covers(feed, key) {
			state.snapshot = s
		}
	}
	_, state.deleted = a.tombstones[uid]
	return state
}

// BeginSnapshot notes that a feed's snapshot begins, and which mark the feed had before. If a
// snapshot starts over, that is the mark before the first one.
func (s *State) BeginSnapshot(name vedette.AccountName, feed vedette.Feed, mark vedette.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.getOrCreateLocked(name)
	a.snapshots[feed], a.disconnectedAt = &snapshot{previousMark: mark}, time.Time{}
}

// IndexChunk is how far the index of a feed has been read.
type IndexChunk struct {
	First   bool
	Last    bool
	Through vedette.Key // of the chunk's last row; unused if Last
}

// RecordIndex notes that a chunk of a feed's index was read, for a snapshot. The first one
// discards what the feed reported so far of objects with a floor or a tombstone, because
// the snapshot will report them again.
func (s *State) RecordIndex(name vedette.AccountName, feed vedette.Feed, chunk IndexChunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.getOrCreateLocked(name)
	indexed := a.snapshots[feed]
	if indexed == nil {
		indexed = &snapshot{}
		a.snapshots[feed] = indexed
	}
	indexed.indexStarted = true
	indexed.indexDone = chunk.Last
	indexed.indexedThrough = chunk.Through
	if chunk.First {
		a.resetDivergences(feed)
	}
}

func (f operationWrites) resetDivergences(feed vedette.Feed) {
	for key, fl := range f.floors {
		if covers(feed, key) {
			fl.divergence = divergence{}
			f.floors[key] = fl
		}
	}
	for uid, t := range f.tombstones {
		if covers(feed, t.key) {
			t.divergence = divergence{}
			f.tombstones[uid] = t
		}
	}
}

// Rewound reports whether a snapshot shows an older state of the cluster than the feed had
// before it, and returns both versions. Versions that cannot be compared are
// not taken for older.
func (s *State) Rewound(name vedette.AccountName, feed vedette.Feed, snapshotMark vedette.Mark) (from, to uint64, rewound bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[name]
	if a == nil || a.snapshots[feed] == nil {
		return 0, 0, false
	}
	from, known := parseVersion(string(a.snapshots[feed].previousMark))
	to, ok := parseVersion(string(snapshotMark))
	return from, to, ok && known && to != 0 && to < from
}

// Knows reports whether anything is known of an account.
func (s *State) Knows(name vedette.AccountName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accounts[name] != nil
}

// Prune forgets objects that no feed reports any more. Objects of unknownGroups are kept, because
// it is not known whether the API server still serves them.
func (s *State) Prune(name vedette.AccountName, feeds []vedette.Feed, unknownGroups []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[name]
	if a == nil {
		return
	}
	gone := func(key vedette.Key) bool {
		return !slices.Contains(unknownGroups, key.Kind.Group) && !slices.ContainsFunc(feeds, func(f vedette.Feed) bool { return covers(f, key) })
	}
	maps.DeleteFunc(a.floors, func(key vedette.Key, _ floor) bool { return gone(key) })
	maps.DeleteFunc(a.tombstones, func(_ string, t tombstone) bool { return gone(t.key) })
	maps.DeleteFunc(a.snapshots, func(feed vedette.Feed, _ *snapshot) bool {
		return gone(vedette.Key{Kind: feed.Kind, Namespace: feed.Namespace})
	})
	s.removeIfEmptyLocked(name, a)
}

// Tombstone is an object that an operation deleted, as it is stored.
type Tombstone struct {
	Key vedette.Key
	UID string
	Age time.Duration
}

// HasTombstones reports whether all tombstones of an account are known, also those of its earlier terms.
func (s *State) HasTombstones(name vedette.AccountName, term vedette.Term) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.informed[name] == term
}

// AddTombstones adds those of an account that were stored before a term, by whichever server.
func (s *State) AddTombstones(name vedette.AccountName, term vedette.Term, stored []Tombstone) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.informed == nil {
		s.informed = map[vedette.AccountName]vedette.Term{}
	}
	s.informed[name] = term
	now := time.Now()
	for _, t := range stored {
		known := s.getOrCreateLocked(name).tombstones
		if _, ok := known[t.UID]; !ok {
			known[t.UID] = tombstone{key: t.Key, createdAt: now.Add(-t.Age)}
		}
	}
}

// Forget drops everything that is known about an account.
func (s *State) Forget(name vedette.AccountName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.accounts, name)
	delete(s.informed, name)
	delete(s.unordered, name)
}

// ForgetFeed drops what is known about the objects of one feed of an account.
func (s *State) ForgetFeed(name vedette.AccountName, feed vedette.Feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unordered[name], feed)
	a := s.accounts[name]
	if a == nil {
		return
	}
	maps.DeleteFunc(a.floors, func(key vedette.Key, _ floor) bool { return covers(feed, key) })
	maps.DeleteFunc(a.tombstones, func(_ string, t tombstone) bool { return covers(feed, t.key) })
	delete(a.snapshots, feed)
	s.removeIfEmptyLocked(name, a)
}

// NoteMark notes that a batch moves the mark of a feed.
func (s *State) NoteMark(name vedette.AccountName, feed vedette.Feed, from, to vedette.Mark) {
	if !IsNewer(string(from), to) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unordered == nil {
		s.unordered = map[vedette.AccountName]map[vedette.Feed]bool{}
	}
	if s.unordered[name] == nil {
		s.unordered[name] = map[vedette.Feed]bool{}
	}
	s.unordered[name][feed] = true
}

// IsOrdered reports whether the marks of a feed have never gone back, as far as this process knows.
func (s *State) IsOrdered(name vedette.AccountName, feed vedette.Feed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.unordered[name][feed]
}

// Disconnect notes that an account's agent has disconnected. What is known is kept for
// TombstoneTTL, because the agent may reconnect and continue from its marks.
func (s *State) Disconnect(name vedette.AccountName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.accounts[name]; a != nil {
		a.disconnectedAt = time.Now()
	}
	delete(s.informed, name)
}

// expireLocked drops accounts whose agents did not reconnect. A snapshot that they did not finish
// is started again on whichever server they are now.
func (s *State) expireLocked(now time.Time) {
	maps.DeleteFunc(s.accounts, func(_ vedette.AccountName, a *account) bool {
		return !a.disconnectedAt.IsZero() && now.Sub(a.disconnectedAt) >= TombstoneTTL
	})
}
