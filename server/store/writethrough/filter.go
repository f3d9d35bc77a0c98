package writethrough

import (
	"maps"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
)

// Filtered is a batch without stale changes, and with those that the state had held back until
// now.
type Filtered struct {
	commit.Batch
	operationWrites // as they are once the batch is stored
	endedSnapshots  []vedette.Feed
	now             time.Time
	state           *State
	account         vedette.AccountName
}

// Database is what the database holds of the objects of an account.
type Database struct {
	// IsDeclared reports whether a feed reports the object.
	IsDeclared func(key vedette.Key) bool
	// Ahead returns the uid and the version of an object that is stored in a newer version than the mark of its feed; the
	// version is empty if it is not, or if the feed has no mark. Only operations store such versions.
	Ahead func(key vedette.Key) (uid, version string)
}

// Filter returns what to store of a batch. It changes neither the state nor the batch. What is known
// about objects that no feed declares any more is dropped.
func (s *State) Filter(name vedette.AccountName, b commit.Batch, db Database) *Filtered {
	f := &Filtered{Batch: b, operationWrites: s.cloneWrites(name), now: time.Now(), state: s, account: name}
	maps.DeleteFunc(f.floors, func(key vedette.Key, _ floor) bool { return !db.IsDeclared(key) })
	maps.DeleteFunc(f.tombstones, func(_ string, t tombstone) bool { return !db.IsDeclared(t.key) })
	f.deriveFloors(db)
	f.run()
	return f
}

// deriveFloors adds the floors of objects that another server wrote, or this one before it was started again. During a snapshot
// there are none: the list began after the account had come here, and an API server answers it with all that was
// written before.
func (f *Filtered) deriveFloors(db Database) {
	derive := func(key vedette.Key, reported string) {
		if _, known := f.floors[key]; known {
			return
		}
		uid, version := db.Ahead(key)
		if n, ok := parseVersion(version); ok && isOlderThan(reported, n) {
			if f.floors == nil {
				f.floors = map[vedette.Key]floor{}
			}
			f.floors[key] = floor{uid: uid, version: n}
		}
	}
	for i := range f.Upserts {
		derive(f.Upserts[i].Key, f.Upserts[i].ResourceVersion)
	}
	for _, d := range f.Deletes {
		derive(d.Key, d.Version)
	}
}

func (s *State) cloneWrites(name vedette.AccountName) operationWrites {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[name]
	if a == nil || a.isEmpty() {
		return operationWrites{}
	}
	return operationWrites{maps.Clone(a.floors), maps.Clone(a.tombstones)}
}

// Settle records that the batch is stored.
func (f *Filtered) Settle() {
	s := f.state
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[f.account]
	if a == nil {
		if f.operationWrites.isEmpty() {
			return
		}
		a = s.getOrCreateLocked(f.account)
	}
	a.disconnectedAt = time.Time{}
	if f.floors != nil {
		a.floors = f.floors
	}
	if f.tombstones != nil {
		a.tombstones = f.tombstones
	}
	for _, feed := range f.endedSnapshots {
		delete(a.snapshots, feed)
	}
	s.removeIfEmptyLocked(f.account, a)
}

func (f *Filtered) run() {
	for _, p := range f.Feeds {
		if p.SnapshotMark != "" {
			f.endedSnapshots = append(f.endedSnapshots, p.Feed)
		}
	}
	if f.operationWrites.isEmpty() {
		return
	}
	f.filterUpserts()
	f.filterDeletes()
	f.filterDrops()
	f.resolveTombstones()
	for _, p := range f.Feeds {
		if p.SnapshotMark != "" {
			f.endSnapshot(p.Feed, string(p.SnapshotMark))
		}
		if p.Mark != nil {
			f.passMark(p.Feed, string(*p.Mark))
		}
	}
	f.expire()
}

func (f *Filtered) filterUpserts() {
	var kept []vedette.Object
	for i := range f.Upserts {
		o := &f.Upserts[i]
		t, deleted := f.tombstones[o.UID]
		fl, ok := f.floors[o.Key]
		switch {
		case deleted:
			t.reported = reportedOf(o)
			f.tombstones[o.UID] = t
		case ok && !fl.allows(o.ResourceVersion):
			fl.reported = reportedOf(o)
			f.floors[o.Key] = fl
		default:
			kept = append(kept, *o)
			delete(f.floors, o.Key)
		}
	}
	f.Upserts = kept
}

// reportedOf copies the object, so that it does not keep the whole batch in memory.
func reportedOf(o *vedette.Object) *reported {
	copied := *o
	return &reported{&copied}
}

func (f *Filtered) filterDeletes() {
	var kept []commit.Deletion
	for _, d := range f.Deletes {
		if fl, ok := f.floors[d.Key]; ok && !fl.allows(d.Version) {
			fl.reported = &reported{}
			f.floors[d.Key] = fl
			continue
		}
		kept = append(kept, d)
		delete(f.floors, d.Key)
	}
	f.Deletes = kept
}

// filterDrops withholds drops of what an operation wrote: which of the two is newer is known
// when the snapshot ends. An object that the snapshot itself reported counts for more than
// its drop.
func (f *Filtered) filterDrops() {
	drops := slices.Clone(f.Drops)
	for i := range drops {
		d := &drops[i]
		withheld := map[uint64]bool{}
		for key, fl := range f.floors {
			if fl.isAbsence() {
				continue // nothing is stored
			}
			for _, digest := range fl.digests(key) {
				if !covers(d.Feed, key) || !slices.Contains(d.Digests, digest) {
					continue
				}
				withheld[digest] = true
				if fl.reported == nil {
					fl.reported = &reported{}
					f.floors[key] = fl
				}
			}
		}
		if len(withheld) > 0 {
			d.Digests = slices.DeleteFunc(slices.Clone(d.Digests), func(digest uint64) bool { return withheld[digest] })
		}
	}
	f.Drops = drops
}

// resolveTombstones drops what was reported of objects that are gone, once the feed reports their
// names as free or as another object's.
func (f *Filtered) resolveTombstones() {
	for uid, t := range f.tombstones {
		if t.reported != nil && f.names(t.key) {
			t.divergence = divergence{}
			f.tombstones[uid] = t
		}
	}
}

// names reports whether the batch writes or deletes an object.
func (f *Filtered) names(key vedette.Key) bool {
	return slices.ContainsFunc(f.Upserts, func(o vedette.Object) bool { return o.Key == key }) ||
		slices.ContainsFunc(f.Deletes, func(d commit.Deletion) bool { return d.Key == key })
}

// endSnapshot decides what becomes of what a snapshot reported that was listed at a version.
func (f *Filtered) endSnapshot(feed vedette.Feed, version string) {
	for key, fl := range f.floors {
		switch {
		case !covers(feed, key):
		case isOlderThan(version, fl.version):
			fl.since = f.now
			f.floors[key] = fl
		default:
			delete(f.floors, key)
			f.accept(key, fl.reported)
		}
	}
	for uid, t := range f.tombstones {
		if covers(feed, t.key) && t.reported != nil {
			t.since = f.now
			f.tombstones[uid] = t
		}
	}
}

// passMark ends the floors that a feed has reached.
func (f *Filtered) passMark(feed vedette.Feed, mark string) {
	for key, fl := range f.floors {
		if covers(feed, key) && fl.isPassedBy(mark) {
			delete(f.floors, key)
		}
	}
}

// expire ends divergences and tombstones that are too old.
func (f *Filtered) expire() {
	for key, fl := range f.floors {
		if fl.isExpired(f.now) {
			delete(f.floors, key)
			f.accept(key, fl.reported)
		} else if fl.isAbsence() && fl.since.IsZero() && f.now.Sub(fl.absentSince) >= TombstoneTTL {
			delete(f.floors, key)
		}
	}
	for uid, t := range f.tombstones {
		if t.isExpired(f.now) {
			delete(f.tombstones, uid)
			f.accept(t.key, t.reported)
		} else if t.since.IsZero() && f.now.Sub(t.createdAt) >= TombstoneTTL {
			delete(f.tombstones, uid)
		}
	}
}

// accept adds what a feed reported to the batch, unless the batch has something newer about the object.
func (f *Filtered) accept(key vedette.Key, c *reported) {
	if c == nil || f.names(key) {
		return
	}
	if c.object == nil {
		f.Deletes = append(f.Deletes, commit.Deletion{Key: key})
		return
	}
	f.Upserts = append(f.Upserts, *c.object)
}
