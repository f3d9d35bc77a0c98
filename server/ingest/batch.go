package ingest

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
)

// taskSet is what a pipeline takes at once: batches of changes, in order, separated by steps that
// no batch may be moved across.
type taskSet struct {
	tasks         []*task
	openTasks     map[vedette.AccountName]*task // each account's last task, while steps can still be added to it
	snapshotBytes map[vedette.AccountName]int   // bytes of snapshot objects by account
	records       uint64                        // number of numbered records
	rows          int
	bytes         int
	remaining     int // tasks that are not finished, once the set was taken; guarded by Pipeline.mu
}

// task is a batch, or a single step of another type.
type task struct {
	set    *taskSet
	batch  *batch
	step   Step
	bytes  int
	weight int64 // bytes of the budget that the steps hold
}

func (t *task) isHeartbeat() bool { return t.batch == nil && t.step.Type == Heartbeat }

func (t *task) isSkip() bool { return t.batch == nil && t.step.Type == Skip }

func (t *task) account() vedette.AccountName {
	if t.batch != nil {
		return t.batch.account
	}
	return t.step.Account
}

func (t *task) term() vedette.Term {
	if t.batch != nil {
		return t.batch.term
	}
	return t.step.Term
}

func newTaskSet() *taskSet {
	return &taskSet{openTasks: map[vedette.AccountName]*task{}, snapshotBytes: map[vedette.AccountName]int{}}
}

// add adds a step that holds weight bytes of the budget. The step keeps its place in the order of
// its account.
func (w *taskSet) add(s Step, weight int64) {
	t := w.assign(s)
	t.bytes += s.Size
	t.weight += weight
	w.bytes += s.Size
}

func (w *taskSet) assign(s Step) *task {
	if s.Type == Upsert && s.Mark == "" {
		w.snapshotBytes[s.Account] += s.Size
	}
	if s.Type != Heartbeat {
		w.records++
	}
	switch s.Type {
	case Declare, Begin, VerifyFeed:
		delete(w.openTasks, s.Account)
		return w.append(&task{step: s})
	case Heartbeat, Skip:
		w.rows++ // it has a few bytes, and takes hundreds
		return w.append(&task{step: s})
	}
	w.rows++
	t := w.openTasks[s.Account]
	if t == nil || t.batch.term != s.Term {
		t = w.append(&task{batch: newBatch(s.Account, s.Term)})
		w.openTasks[s.Account] = t
	}
	t.batch.add(s)
	return t
}

func (w *taskSet) append(t *task) *task {
	t.set = w
	w.tasks = append(w.tasks, t)
	return t
}

// prioritized returns the tasks with accounts first that have few bytes of snapshots, because
// somebody may be waiting for other changes of these accounts. Each account keeps its order. A
// heartbeat covers everything before it, so it stays behind all of that.
func (w *taskSet) prioritized() []*task {
	slices.SortStableFunc(w.tasks, func(a, b *task) int { return cmp.Compare(w.snapshotBytesOf(a), w.snapshotBytesOf(b)) })
	return w.tasks
}

func (w *taskSet) snapshotBytesOf(t *task) int {
	if t.isHeartbeat() {
		return math.MaxInt
	}
	return w.snapshotBytes[t.account()]
}

// batch collects the net result of an account's steps.
type batch struct {
	account vedette.AccountName
	term    vedette.Term
	upserts map[vedette.Key]vedette.Object
	deletes map[vedette.Key]string // with the versions at which they were deleted
	drops   []commit.Drop
	feeds   map[vedette.Feed]*commit.FeedUpdate
	touched map[vedette.Feed]bool // feeds of the objects that the batch writes or deletes
	// verified are feeds that were found to equal their clusters, and what was found before.
	verified map[vedette.Feed]*Verified
}

func newBatch(account vedette.AccountName, term vedette.Term) *batch {
	return &batch{account: account, term: term, upserts: map[vedette.Key]vedette.Object{},
		deletes: map[vedette.Key]string{}, feeds: map[vedette.Feed]*commit.FeedUpdate{}, touched: map[vedette.Feed]bool{},
		verified: map[vedette.Feed]*Verified{}}
}

func (b *batch) add(s Step) {
	switch s.Type {
	case Upsert:
		delete(b.deletes, s.Object.Key)
		b.upserts[s.Object.Key] = s.Object
		b.touched[s.Feed] = true
	case Delete:
		delete(b.upserts, s.Object.Key)
		b.deletes[s.Object.Key] = string(s.Mark)
		b.touched[s.Feed] = true
	case Drop:
		b.drops = append(b.drops, commit.Drop{Feed: s.Feed, Digests: s.Digests})
	case End:
		b.feed(s.Feed).Synced, b.feed(s.Feed).SnapshotMark = time.Now(), s.Mark
		b.state(s.Feed, vedette.FeedLive, "")
	case Status:
		b.state(s.Feed, s.State, s.Message)
	case FeedVerified:
		b.feed(s.Feed).Verified, b.verified[s.Feed] = time.Now(), s.Verified
		b.feed(s.Feed).Drift += s.Verified.total()
	}
	if s.Mark != "" {
		moveMark(b.feed(s.Feed), s.Mark, s.Type == Bookmark && s.IsRemembered)
	}
}

// moveMark sets a mark. It need not be stored at once if that is so for each one that the batch has had of the feed.
func moveMark(u *commit.FeedUpdate, mark vedette.Mark, isRemembered bool) {
	u.IsRemembered = isRemembered && (u.Mark == nil || u.IsRemembered)
	u.Mark = &mark
}

func (b *batch) state(feed vedette.Feed, state vedette.FeedState, message string) {
	u := b.feed(feed)
	u.State, u.Message = state, message
}

func (b *batch) feed(feed vedette.Feed) *commit.FeedUpdate {
	u := b.feeds[feed]
	if u == nil {
		u = &commit.FeedUpdate{Feed: feed}
		b.feeds[feed] = u
	}
	return u
}

func (b *batch) build() commit.Batch {
	out := commit.Batch{Account: b.account, Term: b.term, Drops: b.drops}
	for _, o := range b.upserts {
		out.Upserts = append(out.Upserts, o)
	}
	for key, version := range b.deletes {
		out.Deletes = append(out.Deletes, commit.Deletion{Key: key, Version: version})
	}
	for _, u := range b.feeds {
		out.Feeds = append(out.Feeds, *u)
	}
	return out
}
