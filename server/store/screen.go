package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// screen takes from a batch what is older than what operations found out, and
// says what becomes of that knowledge when the rest is stored.
func (s *Store) screen(ctx context.Context, b *Batch, covered coverage) *screening {
	sc := &screening{batch: *b, knowledge: s.floors.of(b.Account), now: time.Now()}
	for key := range sc.floors {
		if _, err := s.rowKey(ctx, key, covered); errors.Is(err, ErrNoFeed) {
			delete(sc.floors, key) // another server has declared other feeds meanwhile
		}
	}
	for uid, t := range sc.tombs {
		if _, err := s.rowKey(ctx, t.key, covered); errors.Is(err, ErrNoFeed) {
			delete(sc.tombs, uid)
		}
	}
	sc.run()
	*b = sc.batch
	return sc
}

// knowledge is what operations found out about an account's objects.
type knowledge struct {
	floors map[vedette.Key]floor
	tombs  map[string]tomb // by uid
}

func (k knowledge) empty() bool { return len(k.floors) == 0 && len(k.tombs) == 0 }

// screening is what becomes of a batch, and of an account's knowledge once it is
// stored.
type screening struct {
	batch Batch
	knowledge
	ended []vedette.Feed // whose snapshots the batch ends
	now   time.Time
}

func (s *screening) run() {
	for _, u := range s.batch.Feeds {
		if u.Listed != "" {
			s.ended = append(s.ended, u.Feed)
		}
	}
	if s.empty() {
		return
	}
	s.upserts()
	s.deletes()
	s.drops()
	s.hear()
	for _, u := range s.batch.Feeds {
		if u.Listed != "" {
			s.end(u.Feed, string(u.Listed))
		}
		if u.Mark != nil {
			s.pass(u.Feed, string(*u.Mark))
		}
	}
	s.grow()
}

func (s *screening) upserts() {
	var kept []vedette.Object
	for i := range s.batch.Upserts {
		o := &s.batch.Upserts[i]
		t, gone := s.tombs[o.UID]
		f, ok := s.floors[o.Key]
		switch {
		case gone:
			t.word = wordOf(o)
			s.tombs[o.UID] = t
		case ok && !f.admits(o.ResourceVersion):
			f.word = wordOf(o)
			s.floors[o.Key] = f
		default:
			kept = append(kept, *o)
			delete(s.floors, o.Key)
		}
	}
	s.batch.Upserts = kept
}

// wordOf copies the object, so that its batch is not kept for it.
func wordOf(o *vedette.Object) *word {
	said := *o
	return &word{&said}
}

func (s *screening) deletes() {
	var kept []Deletion
	for _, d := range s.batch.Deletes {
		if f, ok := s.floors[d.Key]; ok && !f.admits(d.Version) {
			f.word = &word{}
			s.floors[d.Key] = f
			continue
		}
		kept = append(kept, d)
		delete(s.floors, d.Key)
	}
	s.batch.Deletes = kept
}

// drops holds back what an operation wrote and a snapshot did not find: which of
// the two is newer is known when the snapshot ends. What the snapshot itself said
// of the object counts for more.
func (s *screening) drops() {
	drops := slices.Clone(s.batch.Drops)
	for i := range drops {
		d := &drops[i]
		held := map[uint64]bool{}
		for key, f := range s.floors {
			for _, digest := range f.digests() {
				if !covers(d.Feed, key) || !slices.Contains(d.Digests, digest) {
					continue
				}
				held[digest] = true
				if f.word == nil {
					f.word = &word{}
					s.floors[key] = f
				}
			}
		}
		if len(held) > 0 {
			d.Digests = slices.DeleteFunc(slices.Clone(d.Digests), func(digest uint64) bool { return held[digest] })
		}
	}
	s.batch.Drops = drops
}

// hear ends what there was to say of objects that have gone, once their names
// are told to be free or another's.
func (s *screening) hear() {
	for uid, t := range s.tombs {
		if t.word == nil {
			continue
		}
		if slices.ContainsFunc(s.batch.Upserts, func(o vedette.Object) bool { return o.Key == t.key }) ||
			slices.ContainsFunc(s.batch.Deletes, func(d Deletion) bool { return d.Key == t.key }) {
			t.dispute = dispute{}
			s.tombs[uid] = t
		}
	}
}

// end decides what a snapshot's word counts for that was read at a version.
func (s *screening) end(feed vedette.Feed, version string) {
	for key, f := range s.floors {
		switch {
		case !covers(feed, key):
		case before(version, f.version):
			f.doubt = s.now
			s.floors[key] = f
		default:
			delete(s.floors, key)
			s.believe(key, f.word)
		}
	}
	for uid, t := range s.tombs {
		if covers(feed, t.key) && t.word != nil {
			t.doubt = s.now
			s.tombs[uid] = t
		}
	}
}

// pass ends the floors that a feed has reached.
func (s *screening) pass(feed vedette.Feed, mark string) {
	for key, f := range s.floors {
		if covers(feed, key) && f.passed(mark) {
			delete(s.floors, key)
		}
	}
}

// grow ends what has stood for too long.
func (s *screening) grow() {
	for key, f := range s.floors {
		if f.settled(s.now) {
			delete(s.floors, key)
			s.believe(key, f.word)
		}
	}
	for uid, t := range s.tombs {
		if t.settled(s.now) {
			delete(s.tombs, uid)
			s.believe(t.key, t.word)
		} else if t.doubt.IsZero() && s.now.Sub(t.made) >= tombFor {
			delete(s.tombs, uid)
		}
	}
}

// believe does what a feed said of an object, unless the batch says something newer.
func (s *screening) believe(key vedette.Key, w *word) {
	if w == nil || slices.ContainsFunc(s.batch.Upserts, func(o vedette.Object) bool { return o.Key == key }) ||
		slices.ContainsFunc(s.batch.Deletes, func(d Deletion) bool { return d.Key == key }) {
		return
	}
	if w.object == nil {
		s.batch.Deletes = append(s.batch.Deletes, Deletion{Key: key})
		return
	}
	s.batch.Upserts = append(s.batch.Upserts, *w.object)
}
