package writetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// historyEntry is one change in a cluster's history.
type historyEntry struct {
	object  vedette.Object
	version int // 0 of what an operation did not find
	deleted bool
	absent  string // up to which version an operation has found the object gone; empty if it does not know that
}

// simulation is a cluster with its history, an agent that reports it late, and operations whose
// results arrive in any order.
type simulation struct {
	t       *testing.T
	random  *rand.Rand
	w       podWriter
	history []historyEntry
	alive   map[vedette.Key]vedette.Object
	version int
	results []historyEntry // not delivered yet

	// The agent.
	read        int            // version up to which the agent has read
	queue       []historyEntry // read and not sent, at most one per object
	mark        int            // stored mark; 0 for none
	highestMark int            // highest mark so far
	snapshot    *agentSnapshot // nil while the agent watches

	// Observed in the store so far.
	newest map[vedette.Key]int
	gone   map[string]bool     // uids of objects that an operation found gone
	absent map[vedette.Key]int // up to which version an operation found an object gone
}

// agentSnapshot is a snapshot in progress at the agent.
type agentSnapshot struct {
	version int
	objects map[vedette.Key]vedette.Object
	index   map[uint64]bool // nil until it is read from the store
	unsent  []vedette.Object
	drops   []uint64
}

func testRandomWriteThrough(t *testing.T, s *store.Store, seed uint64) {
	c := &simulation{t: t, random: rand.New(rand.NewPCG(seed, 7)), w: podWriter{storetest.NewWriter(t, s, "prod",
		storetest.FeedOf(storetest.Pods))},
		alive: map[vedette.Key]vedette.Object{}, newest: map[vedette.Key]int{}, gone: map[string]bool{},
		absent: map[vedette.Key]int{}}
	for n := range 700 {
		c.step(n)
		c.check()
		if t.Failed() {
			t.Fatalf("seed %d, version %d, mark %d", seed, c.version, c.mark)
		}
	}
	for len(c.results) > 0 {
		c.deliverResult()
		c.check()
	}
	for c.mark < c.version {
		c.stepAgent()
		c.check()
	}
	storetest.Equal(t, fmt.Sprintf("seed %d, at the end", seed), storetest.RowNames(storetest.QueryAll(t, s, read.Query{})), c.expected())
}

// expected returns what the store must hold when everything is reported.
func (c *simulation) expected() []string {
	var want []string
	for _, key := range slices.SortedFunc(maps.Keys(c.alive), compareKeys) {
		want = append(want, fmt.Sprintf("prod %s@%s", key, c.alive[key].ResourceVersion))
	}
	return want
}

// step does one random thing. In turns everything works, the agent lags behind, and its watches
// break.
func (c *simulation) step(n int) {
	lags, breaks := n/30%3 == 1, n/30%3 == 2
	switch roll := c.random.IntN(24); {
	case roll < 7:
		c.changeObject()
	case roll < 12:
		c.deliverResult()
	case roll < 14 || roll < 20 && !lags:
		c.stepAgent()
	case roll == 20:
		c.reconnect()
	case roll > 20 && breaks:
		c.restartSnapshot()
	}
}

// changeObject changes an object of the cluster. Every second change is an operation's.
func (c *simulation) changeObject() {
	key := vedette.Key{Kind: storetest.Pods, Namespace: fmt.Sprint("n", c.random.IntN(2)), Name: fmt.Sprint("pod-", c.random.IntN(3))}
	c.version += 1 + c.random.IntN(3)
	old, exists := c.alive[key]
	changed := storetest.Object(storetest.Pods, key.Namespace, key.Name, fmt.Sprint(c.version))
	changed.UID = old.UID
	if !exists {
		changed.UID = fmt.Sprintf("00000000-0000-4000-8000-%012x", c.version)
	}
	h := historyEntry{object: changed, version: c.version, deleted: exists && c.random.IntN(3) == 0}
	if h.deleted {
		delete(c.alive, key)
		if c.random.IntN(2) == 0 {
			h.absent = old.ResourceVersion // which the operation has read before it deletes the object
		}
	} else {
		c.alive[key] = changed
	}
	c.history = append(c.history, h)
	for n := range 3 { // operations that find nothing
		other := vedette.Key{Kind: storetest.Pods, Namespace: key.Namespace, Name: fmt.Sprint("pod-", n)}
		if _, exists := c.alive[other]; !exists {
			c.mayFindAbsence(other, fmt.Sprint(c.version))
		}
	}
	if c.random.IntN(2) == 0 {
		c.results = append(c.results, h)
	}
}

// mayFindAbsence lets an operation find out that an object is gone up to a version.
func (c *simulation) mayFindAbsence(key vedette.Key, version string) {
	if c.random.IntN(4) == 0 {
		c.results = append(c.results, historyEntry{object: vedette.Object{Key: key}, absent: version})
	}
}

// deliverResult writes the result of an operation through.
func (c *simulation) deliverResult() {
	if len(c.results) == 0 {
		return
	}
	i := c.random.IntN(len(c.results))
	h := c.results[i]
	c.results = slices.Delete(c.results, i, i+1)
	if h.absent != "" || h.deleted {
		gone, uid := vedette.Absence{Key: h.object.Key, Version: h.absent}, ""
		if h.deleted {
			uid = h.object.UID
			c.gone[uid] = true
		}
		changes, _, err := c.w.Store.RemoveAbsent(c.t.Context(), "prod", c.w.Term, gone, uid, nil)
		if err != nil || len(changes) > 1 {
			c.t.Fatal(changes, err)
		}
		if version, err := strconv.Atoi(h.absent); err == nil {
			c.absent[h.object.Key] = max(c.absent[h.object.Key], version)
		}
		return
	}
	c.w.writeThrough(h.object)
	if !c.maySkip(h) {
		c.newest[h.object.Key] = max(c.newest[h.object.Key], h.version)
	}
}

// maySkip reports whether a result may have no effect: its object is deleted since, or a newer
// change of it replaced it in the agent's queue and is beyond the mark.
func (c *simulation) maySkip(h historyEntry) bool {
	return slices.ContainsFunc(c.history, func(later historyEntry) bool {
		return later.object.Key == h.object.Key && later.version > h.version && (later.deleted || c.highestMark >= h.version)
	})
}

// stepAgent does the next step of the agent.
func (c *simulation) stepAgent() {
	switch l := c.snapshot; {
	case l == nil && c.mark == 0:
		c.startSnapshot()
	case l == nil:
		c.readHistory()
		c.sendBatch()
	case l.index == nil:
		c.beginSnapshot(l)
	case len(l.unsent) > 0 && c.random.IntN(3) > 0:
		n := 1 + c.random.IntN(len(l.unsent))
		c.w.Put(l.unsent[:n]...)
		l.unsent = l.unsent[n:]
	case len(l.unsent) == 0 && len(l.drops) > 0 && c.random.IntN(2) == 0:
		c.w.Commit(commit.Batch{Drops: []commit.Drop{{Feed: storetest.FeedOf(storetest.Pods), Digests: l.drops}}})
		l.drops = nil
	case len(l.unsent) == 0:
		c.endSnapshot(l)
	}
}

// readHistory reads some changes. A newer change of an object replaces the older one, at the end
// of the queue.
func (c *simulation) readHistory() {
	remaining := 1 + c.random.IntN(4)
	for _, h := range c.history {
		if h.version <= c.read || remaining == 0 {
			continue
		}
		remaining--
		c.read = h.version
		c.queue = slices.DeleteFunc(c.queue, func(old historyEntry) bool { return old.object.Key == h.object.Key })
		c.queue = append(c.queue, h)
	}
}

func (c *simulation) sendBatch() {
	var b commit.Batch
	mark := c.takeQueued(&b)
	if mark == 0 {
		return
	}
	c.mark, c.highestMark = mark, mark
	m := vedette.Mark(fmt.Sprint(mark))
	b.Feeds = []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &m, State: vedette.FeedLive}}
	c.w.Commit(b)
}

// takeQueued moves the first changes of the queue into a batch and returns their mark.
func (c *simulation) takeQueued(b *commit.Batch) (mark int) {
	for range min(len(c.queue), 1+c.random.IntN(4)) {
		h := c.queue[0]
		c.queue = c.queue[1:]
		mark = h.version
		if h.deleted {
			b.Deletes = append(b.Deletes, commit.Deletion{Key: h.object.Key, Version: fmt.Sprint(h.version)})
		} else {
			b.Upserts = append(b.Upserts, h.object)
		}
	}
	return mark
}

// startSnapshot lists the cluster. beginSnapshot passes it to the store later.
func (c *simulation) startSnapshot() {
	c.snapshot = &agentSnapshot{version: c.version, objects: maps.Clone(c.alive)}
	if c.version == 0 {
		c.changeObject()
		c.snapshot = nil
	}
}

func (c *simulation) beginSnapshot(l *agentSnapshot) {
	c.queue, c.mark = nil, 0
	c.w.beginSnapshot()
	if c.random.IntN(2) == 0 {
		c.deliverResult()
	}
	l.index = map[uint64]bool{}
	err := c.w.Store.Index(c.t.Context(), "prod", storetest.FeedOf(storetest.Pods), func(digests []uint64) error {
		for _, d := range digests {
			l.index[d] = true
		}
		if c.random.IntN(2) == 0 {
			c.deliverResult()
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, o := range l.objects {
		if digest := vedette.Digest(o.Namespace, o.Name, o.UID, o.ResourceVersion); l.index[digest] {
			delete(l.index, digest)
		} else {
			l.unsent = append(l.unsent, o)
		}
	}
	l.drops = slices.Collect(maps.Keys(l.index))
}

// endSnapshot commits the end of a snapshot, sometimes together with changes after it.
func (c *simulation) endSnapshot(l *agentSnapshot) {
	b := commit.Batch{}
	if len(l.drops) > 0 {
		b.Drops = []commit.Drop{{Feed: storetest.FeedOf(storetest.Pods), Digests: l.drops}}
	}
	c.snapshot = nil
	c.read = l.version
	c.mark = l.version
	if c.random.IntN(2) == 0 {
		c.readHistory()
		c.mark = max(c.mark, c.takeQueued(&b))
	}
	c.highestMark = c.mark
	m := vedette.Mark(fmt.Sprint(c.mark))
	b.Feeds = []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &m, SnapshotMark: vedette.Mark(fmt.Sprint(l.version)),
		State: vedette.FeedLive}}
	c.w.Commit(b)
}

// restartSnapshot makes the agent list again.
func (c *simulation) restartSnapshot() {
	if c.snapshot == nil {
		c.startSnapshot()
	}
}

// reconnect makes the agent the cacher again, at the same or at another server. It continues from the mark, or lists if there is
// none.
func (c *simulation) reconnect() {
	s := c.w.Store
	if c.random.IntN(2) == 0 {
		s = storetest.AnotherServer(c.t, s)
	}
	c.w.Writer = storetest.Acquire(c.t, s, "prod")
	c.w.Declare(storetest.FeedOf(storetest.Pods))
	c.snapshot = nil
	c.queue = nil
	c.read = c.mark
}

// check checks that no object went back to an older version, that no object vanished that the
// cluster still has, that no removed object came back, and that the store equals the cluster
// whenever everything is reported.
func (c *simulation) check() {
	stored := map[vedette.Key]bool{}
	rows := storetest.QueryAll(c.t, c.w.Store, read.Query{})
	if c.snapshot == nil && c.mark == c.version {
		storetest.Equal(c.t, "everything is reported", storetest.RowNames(rows), c.expected())
	}
	for _, r := range rows {
		var version int
		if _, err := fmt.Sscan(r.ResourceVersion, &version); err != nil {
			c.t.Fatal(err)
		}
		if version < c.newest[r.Key] {
			c.t.Errorf("%s: got version %d, want %d or newer", r.Key, version, c.newest[r.Key])
		}
		if c.gone[r.UID] {
			c.t.Errorf("%s: got removed uid %s at version %d, want it gone", r.Key, r.UID, version)
		}
		if version <= c.absent[r.Key] {
			c.t.Errorf("%s: got version %d, want nothing from version %d or before", r.Key, version, c.absent[r.Key])
		}
		stored[r.Key], c.newest[r.Key] = true, version
	}
	for key, version := range c.newest {
		if !stored[key] && !slices.ContainsFunc(c.history, func(h historyEntry) bool {
			return h.deleted && h.object.Key == key && h.version > version
		}) {
			c.t.Errorf("%s: got no object, want version %d or newer", key, version)
		}
	}
}
