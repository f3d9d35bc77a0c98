package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// filterStale takes from a batch what is older than what operations found out, and
// says what becomes of that knowledge when the rest is stored.
func (s *Store) filterStale(ctx context.Context, b *Batch, covered coverage) *staleFilter {
	filter := &staleFilter{batch: *b, observations: s.overlays.clone(b.Account), now: time.Now()}
	for key := range filter.floors {
		if _, err := s.resolveRowKey(ctx, key, covered); errors.Is(err, ErrNoFeed) {
			delete(filter.floors, key) // another server has declared other feeds meanwhile
		}
	}
	for uid, t := range filter.tombstones {
		if _, err := s.resolveRowKey(ctx, t.key, covered); errors.Is(err, ErrNoFeed) {
			delete(filter.tombstones, uid)
		}
	}
	filter.run()
	*b = filter.batch
	return filter
}

// observations is what operations found out about an account's objects.
type observations struct {
	floors     map[vedette.Key]versionFloor
	tombstones map[string]tombstone // by uid
}

func (k observations) isEmpty() bool { return len(k.floors) == 0 && len(k.tombstones) == 0 }

// staleFilter is what becomes of a batch, and of an account's knowledge once it is
// stored.
type staleFilter struct {
	batch Batch
	observations
	endedSnapshots []vedette.Feed // whose snapshots the batch ends
	now            time.Time
}

func (s *staleFilter) run() {
	for _, u := range s.batch.Feeds {
		if u.SnapshotMark != "" {
			s.endedSnapshots = append(s.endedSnapshots, u.Feed)
		}
	}
	if s.isEmpty() {
		return
	}
	s.filterUpserts()
	s.filterDeletes()
	s.filterDrops()
	s.resolveTombstones()
	for _, u := range s.batch.Feeds {
		if u.SnapshotMark != "" {
			s.endSnapshot(u.Feed, string(u.SnapshotMark))
		}
		if u.Mark != nil {
			s.passMark(u.Feed, string(*u.Mark))
		}
	}
	s.expire()
}

func (s *staleFilter) filterUpserts() {
	var kept []vedette.Object
	for i := range s.batch.Upserts {
		o := &s.batch.Upserts[i]
		t, deleted := s.tombstones[o.UID]
		f, ok := s.floors[o.Key]
		switch {
		case deleted:
			t.claim = claimOf(o)
			s.tombstones[o.UID] = t
		case ok && !f.allows(o.ResourceVersion):
			f.claim = claimOf(o)
			s.floors[o.Key] = f
		default:
			kept = append(kept, *o)
			delete(s.floors, o.Key)
		}
	}
	s.batch.Upserts = kept
}

// claimOf copies the object, so that its batch is not kept for it.
func claimOf(o *vedette.Object) *claim {
	copied := *o
	return &claim{&copied}
}

func (s *staleFilter) filterDeletes() {
	var kept []Deletion
	for _, d := range s.batch.Deletes {
		if f, ok := s.floors[d.Key]; ok && !f.allows(d.Version) {
			f.claim = &claim{}
			s.floors[d.Key] = f
			continue
		}
		kept = append(kept, d)
		delete(s.floors, d.Key)
	}
	s.batch.Deletes = kept
}

// filterDrops holds back what an operation wrote and a snapshot did not find: which of
// the two is newer is known when the snapshot ends. What the snapshot itself said
// of the object counts for more.
func (s *staleFilter) filterDrops() {
	drops := slices.Clone(s.batch.Drops)
	for i := range drops {
		d := &drops[i]
		withheld := map[uint64]bool{}
		for key, f := range s.floors {
			for _, digest := range f.digests() {
				if !covers(d.Feed, key) || !slices.Contains(d.Digests, digest) {
					continue
				}
				withheld[digest] = true
				if f.claim == nil {
					f.claim = &claim{}
					s.floors[key] = f
				}
			}
		}
		if len(withheld) > 0 {
			d.Digests = slices.DeleteFunc(slices.Clone(d.Digests), func(digest uint64) bool { return withheld[digest] })
		}
	}
	s.batch.Drops = drops
}

// resolveTombstones ends what there was to say of objects that have gone, once their names
// are told to be free or another's.
func (s *staleFilter) resolveTombstones() {
	for uid, t := range s.tombstones {
		if t.claim == nil {
			continue
		}
		if slices.ContainsFunc(s.batch.Upserts, func(o vedette.Object) bool { return o.Key == t.key }) ||
			slices.ContainsFunc(s.batch.Deletes, func(d Deletion) bool { return d.Key == t.key }) {
			t.conflict = conflict{}
			s.tombstones[uid] = t
		}
	}
}

// endSnapshot decides what a snapshot's word counts for that was read at a version.
func (s *staleFilter) endSnapshot(feed vedette.Feed, version string) {
	for key, f := range s.floors {
		switch {
		case !covers(feed, key):
		case olderThan(version, f.version):
			f.since = s.now
			s.floors[key] = f
		default:
			delete(s.floors, key)
			s.accept(key, f.claim)
		}
	}
	for uid, t := range s.tombstones {
		if covers(feed, t.key) && t.claim != nil {
			t.since = s.now
			s.tombstones[uid] = t
		}
	}
}

// passMark ends the floors that a feed has reached.
func (s *staleFilter) passMark(feed vedette.Feed, mark string) {
	for key, f := range s.floors {
		if covers(feed, key) && f.passedBy(mark) {
			delete(s.floors, key)
		}
	}
}

// expire ends what has stood for too long.
func (s *staleFilter) expire() {
	for key, f := range s.floors {
		if f.expired(s.now) {
			delete(s.floors, key)
			s.accept(key, f.claim)
		}
	}
	for uid, t := range s.tombstones {
		if t.expired(s.now) {
			delete(s.tombstones, uid)
			s.accept(t.key, t.claim)
		} else if t.since.IsZero() && s.now.Sub(t.createdAt) >= tombstoneTTL {
			delete(s.tombstones, uid)
		}
	}
}

// accept does what a feed said of an object, unless the batch says something newer.
func (s *staleFilter) accept(key vedette.Key, c *claim) {
	if c == nil || slices.ContainsFunc(s.batch.Upserts, func(o vedette.Object) bool { return o.Key == key }) ||
		slices.ContainsFunc(s.batch.Deletes, func(d Deletion) bool { return d.Key == key }) {
		return
	}
	if c.object == nil {
		s.batch.Deletes = append(s.batch.Deletes, Deletion{Key: key})
		return
	}
	s.batch.Upserts = append(s.batch.Upserts, *c.object)
}
