package outbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

var pods = vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}
var jobs = vedette.Feed{Kind: vedette.Kind{Group: "batch", Name: "Job"}}

func change(feed vedette.Feed, priority Priority, key, mark string) Change {
	return Change{Account: "a", Feed: feed, Priority: priority, Key: key, Mark: vedette.Mark(mark), Record: []byte(key + "@" + mark)}
}

func records(changes []Change) string {
	var out []string
	for _, c := range changes {
		out = append(out, string(c.Record))
	}
	return strings.Join(out, " ")
}

func putAll(t *testing.T, b *Box, changes ...Change) {
	t.Helper()
	for _, c := range changes {
		if err := b.Put(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLiveChangesOvertakeOtherSnapshots(t *testing.T) {
	tests := []struct {
		name string
		put  []Change
		want string
	}{
		{"a newer change of an object moves to the end",
			[]Change{change(pods, Live, "x", "1"), change(pods, Live, "y", "2"), change(pods, Live, "x", "3")}, "y@2 x@3"},
		{"live changes overtake another feed's snapshot",
			[]Change{change(pods, Bulk, "x", ""), change(pods, Bulk, "y", ""), change(jobs, Live, "j", "5")}, "j@5 x@ y@"},
		{"live changes do not overtake the snapshot of their own feed",
			[]Change{change(pods, Bulk, "x", ""), change(pods, Bulk, "", "4"), change(pods, Live, "x2", "5")}, "x@ @4 x2@5"},
		{"a change without a key is never replaced",
			[]Change{change(pods, Live, "", "1"), change(pods, Live, "", "2")}, "@1 @2"},
		{"feeds of one priority take turns",
			[]Change{change(pods, Live, "x", "1"), change(pods, Live, "y", "2"), change(jobs, Live, "j", "7")}, "x@1 j@7 y@2"},
		{"deferred changes leave with others, before snapshots of other feeds",
			[]Change{change(pods, Deferred, "x", "1"), change(jobs, Bulk, "y", "")}, "x@1 y@"},
		{"a change does not wait for a deferred one of its feed",
			[]Change{change(pods, Deferred, "b", "1"), change(pods, Live, "x", "2"), change(jobs, Bulk, "y", "")}, "b@1 x@2 y@"},
		{"control changes go first",
			[]Change{change(pods, Live, "x", "1"), {Account: "a", Priority: Control, Record: []byte("declare")}}, "declare x@1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := New(1 << 20)
			open(b, 1, nil)
			putAll(t, b, tt.put...)
			got, err := b.Take(context.Background(), 1<<20)
			if err != nil || records(got) != tt.want {
				t.Errorf("got %q, %v, want %q", records(got), err, tt.want)
			}
		})
	}
}

// takeAll takes all available changes.
func takeAll(t *testing.T, b *Box) string {
	t.Helper()
	got, err := b.Take(t.Context(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return records(got)
}

func TestDeferredChangesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1 << 20)
		open(b, 1, nil)
		began := time.Now()
		putAll(t, b, change(pods, Deferred, "bookmark", "1"))
		time.Sleep(deferInterval / 2)
		putAll(t, b, change(jobs, Deferred, "bookmark", "2"), change(pods, Deferred, "bookmark", "3"))
		if got := time.Since(b.PendingSince()); got != 0 {
			t.Errorf("deferred changes count as a delay of %v", got)
		}
		if got := takeAll(t, b); time.Since(began) != deferInterval || got != "bookmark@2 bookmark@3" {
			t.Errorf("got %q after %v, want both after %v", got, time.Since(began), deferInterval)
		}
		putAll(t, b, change(pods, Deferred, "bookmark", "4"))
		time.Sleep(deferInterval / 2)
		putAll(t, b, change(pods, Live, "x", "5"))
		if got := time.Since(b.PendingSince()); got != 0 {
			t.Errorf("a change behind a deferred one counts as a delay of %v", got)
		}
		if got := takeAll(t, b); time.Since(began) != deferInterval*3/2 || got != "bookmark@4 x@5" {
			t.Errorf("got %q after %v, want both at once", got, time.Since(began))
		}
	})
}

// TestResentDeferredChangeDelaysNothing checks that a change does not wait behind a deferred one that
// was sent over a lost connection.
func TestResentDeferredChangeDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1 << 20)
		marks := map[vedette.Feed]vedette.Mark{pods: "0"}
		open(b, 1, marks)
		putAll(t, b, change(pods, Deferred, "bookmark", "1"))
		takeAll(t, b)
		time.Sleep(deferInterval)
		putAll(t, b, change(pods, Live, "x", "2"))
		began := time.Now()
		b.Rewind()
		open(b, 2, marks)
		if got := takeAll(t, b); time.Since(began) != 0 || got != "bookmark@1 x@2" {
			t.Errorf("got %q after %v, want both at once", got, time.Since(began))
		}
	})
}

// Unacknowledged changes of an account must not come back if the account was forgotten and
// opened again meanwhile, because they may be older than what the server has stored since.
func TestForgottenChangesAreNotResent(t *testing.T) {
	b := New(1 << 20)
	open(b, 1, nil)
	putAll(t, b, change(pods, Live, "x", "1"))
	takeAll(t, b)
	b.Forget("a")
	open(b, 2, map[vedette.Feed]vedette.Mark{pods: "8"})
	putAll(t, b, change(pods, Live, "x", "9"))
	b.Rewind()
	if restart := open(b, 3, map[vedette.Feed]vedette.Mark{pods: "8"}); len(restart) != 0 {
		t.Errorf("got restarts %v, want none", restart)
	}
	if got := takeAll(t, b); got != "x@9" {
		t.Errorf("got %q after the connection was lost, want x@9", got)
	}
}

func TestRetainFeedsDropsOtherFeeds(t *testing.T) {
	b := New(1 << 20)
	open(b, 1, nil)
	putAll(t, b, change(jobs, Live, "sent", "1"))
	takeAll(t, b)
	putAll(t, b, change(jobs, Live, "j", "2"), change(pods, Live, "x", "3"))
	b.RetainFeeds("a", map[vedette.Feed]bool{pods: true})
	putAll(t, b, Change{Account: "a", Priority: Control, Key: "declare", Record: []byte("declare")})
	if got := takeAll(t, b); got != "declare x@3" {
		t.Errorf("got %q, want the declaration and the change of the remaining feed", got)
	}
	b.Rewind()
	open(b, 2, map[vedette.Feed]vedette.Mark{pods: "3"})
	putAll(t, b, change(pods, Live, "y", "4"))
	if got := takeAll(t, b); got != "declare y@4" {
		t.Errorf("got %q after the connection was lost, want none", got)
	}
}

func TestEveryFourthChangeIsBulk(t *testing.T) {
	b := New(1 << 20)
	open(b, 1, nil)
	for i := range 8 {
		putAll(t, b, change(pods, Bulk, fmt.Sprint("b", i), ""), change(jobs, Live, fmt.Sprint("l", i), fmt.Sprint(i)))
	}
	got, _ := b.Take(context.Background(), 1<<20)
	if want := "l0@0 l1@1 l2@2 b0@ l3@3 l4@4 l5@5 b1@ l6@6 l7@7 b2@ b3@ b4@ b5@ b6@ b7@"; records(got) != want {
		t.Errorf("got  %q\nwant %q", records(got), want)
	}
}

func TestPutBlocksWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1000)
		open(b, 1, nil)
		var done int
		go func() {
			for i := range 10 {
				_ = b.Put(context.Background(), change(pods, Live, fmt.Sprint(i), fmt.Sprint(i)))
				done++
			}
		}()
		synctest.Wait()
		if done != 6 || b.Used() > 1000 {
			t.Fatalf("got %d changes in %d bytes, want 6 within 1000", done, b.Used())
		}
		taken, _ := b.Take(context.Background(), 1<<20)
		synctest.Wait()
		if done != 6 {
			t.Fatal("got a Put while unacknowledged changes fill the box, want it to block")
		}
		b.Ack(uint64(len(taken)))
		synctest.Wait()
		if done != 10 {
			t.Fatalf("got %d changes after the acknowledgement, want 10", done)
		}
	})
}

func TestPutReturnsContextCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1)
		putAll(t, b, change(pods, Live, "x", "1"))
		ctx, cancel := context.WithCancelCause(context.Background())
		var err error
		go func() { err = b.Put(ctx, change(pods, Live, "y", "2")) }()
		synctest.Wait()
		cancel(fmt.Errorf("leaving"))
		synctest.Wait()
		if err == nil || err.Error() != "leaving" {
			t.Errorf("got error %v, want the cause of the context", err)
		}
	})
}

func TestPausedAccountsAreNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1 << 20)
		putAll(t, b, change(pods, Live, "x", "1"))
		var got []Change
		go func() { got, _ = b.Take(context.Background(), 1<<20) }()
		synctest.Wait()
		if got != nil {
			t.Fatalf("got %q before Open, want none", records(got))
		}
		open(b, 7, map[vedette.Feed]vedette.Mark{pods: "1"})
		putAll(t, b, change(pods, Live, "y", "2"))
		synctest.Wait()
		if records(got) != "y@2" || got[0].Term != 7 {
			t.Errorf("got %q in term %d, want y@2 in term 7", records(got), got[0].Term)
		}
	})
}

func TestFrequentUpdatesDoNotGrowBox(t *testing.T) {
	b := New(1 << 20)
	for i := range 100_000 {
		putAll(t, b, change(pods, Live, fmt.Sprint("x", i%10), fmt.Sprint(i)))
	}
	q := b.accounts["a"].queues[pods]
	if len(q.items) > 200 || len(q.keys) != 10 {
		t.Errorf("got %d places and %d keys for ten objects", len(q.items), len(q.keys))
	}
	if want := q.used.total(); b.Used() != want {
		t.Errorf("got %d used bytes, want %d", b.Used(), want)
	}
}

// TestStoredStateConvergesToCluster simulates a cluster, a box and a server with random
// changes, partial batches, lost acknowledgements and lost connections. In the end the
// server must have the state of the cluster.
func TestStoredStateConvergesToCluster(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
	}
}

func simulate(t *testing.T, seed uint64) {
	w := newSimulation(t, seed)
	for range 400 {
		w.step()
	}
	w.deliverAll()
	if q := w.box.accounts["a"].queues[pods]; w.box.Unacknowledged() != 0 || w.box.Used() != q.used.total() {
		t.Fatalf("seed %d: got %d bytes unacknowledged and %d in use, want 0 and %d", seed, w.box.Unacknowledged(), w.box.Used(), q.used.total())
	}
	if got, want := fmt.Sprint(w.stored), fmt.Sprint(w.cluster); got != want {
		t.Fatalf("seed %d: got stored %s\nwant %s", seed, got, want)
	}
}

var largeRecord = make([]byte, largeChange)

type simulation struct {
	t        *testing.T
	rnd      *rand.Rand
	box      *Box
	rv       int
	cluster  map[string]int
	log      []Change // every change of the cluster, for a watch that begins again
	stored   map[string]int
	mark     int      // the server's
	held     int      // the mark of a later bookmark, which the server forgets when it ends; 0 for none
	bookmark string   // distinguishes the marks of other agents from ours
	inflight []Change // sent, not yet committed
	commits  uint64
	term     vedette.Term
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	w := &simulation{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), box: New(1 << 30), cluster: map[string]int{}, stored: map[string]int{}}
	w.rv = 1
	w.mark = 1
	w.term = 1
	w.box.Recall("a", w.term)
	w.open()
	return w
}

func (w *simulation) step() {
	switch n := w.rnd.IntN(22); {
	case n == 21:
		time.Sleep(time.Duration(w.rnd.IntN(20)) * time.Second)
	case n == 20:
		w.ask()
	case n < 9:
		w.change()
	case n < 10:
		w.reportBookmark()
	case n < 14:
		w.send()
	case n < 17:
		w.commit()
	case n < 19:
		w.box.Ack(w.commits - uint64(w.rnd.IntN(int(w.commits)+1)))
	default:
		if w.rnd.IntN(2) == 0 {
			w.reconnect()
		} else {
			w.reassign()
		}
	}
}

func (w *simulation) change() {
	w.rv++
	key := fmt.Sprint("o", w.rnd.IntN(6))
	c := change(pods, Live, key, fmt.Sprint(w.rv))
	if w.rnd.IntN(4) == 0 {
		delete(w.cluster, key)
		c.Record = []byte("delete")
	} else {
		w.cluster[key] = w.rv
		if w.rnd.IntN(4) == 0 {
			c.Record = largeRecord
		}
	}
	w.log = append(w.log, c)
	putAll(w.t, w.box, c)
}

// reportBookmark advances the mark without a change.
func (w *simulation) reportBookmark() {
	w.rv++
	c := change(pods, Deferred, "\x00bookmark", fmt.Sprint(w.rv))
	c.Record, c.IsBookmark = []byte("bookmark"), true
	w.log = append(w.log, c)
	putAll(w.t, w.box, c)
}

// ask asks what is stored, as a verification does.
func (w *simulation) ask() {
	c := change(pods, Live, "\x00verify", "")
	c.Record, c.Question = fmt.Appendf(nil, "ask %d", w.rv), true
	putAll(w.t, w.box, c)
}

// answer checks that everything is stored that was put before a question, or something later.
func (w *simulation) answer(asked int) {
	last := map[string]int{}
	for _, c := range w.log {
		var rv int
		if fmt.Sscan(string(c.Mark), &rv); rv <= asked {
			last[c.Key] = rv
		}
	}
	for key, rv := range last {
		if stored := w.stored[key]; stored > 0 && stored < rv {
			w.t.Fatalf("asked at %d: %s is stored as of %d, although it was put as of %d", asked, key, stored, rv)
		}
	}
}

func (w *simulation) send() {
	w.inflight = append(w.inflight, w.box.take(w.rnd.IntN(2000))...)
}

func (w *simulation) commit() {
	if len(w.inflight) == 0 {
		return
	}
	for _, c := range w.inflight[:1+w.rnd.IntN(len(w.inflight))] {
		w.apply(c)
	}
}

func (w *simulation) apply(c Change) {
	w.inflight = w.inflight[1:]
	w.commits++
	if c.Term != w.term {
		return // skipped, but acknowledged
	}
	var rv int
	if c.Question {
		fmt.Sscanf(string(c.Record), "ask %d", &rv)
		w.answer(rv)
		return
	}
	fmt.Sscan(string(c.Mark), &rv)
	w.bookmark = ""
	w.store(c, rv)
}

func (w *simulation) store(c Change, rv int) {
	if string(c.Record) == "bookmark" && w.rnd.IntN(4) > 0 {
		w.held = rv
		return
	}
	w.mark, w.held = rv, 0
	switch string(c.Record) {
	case "delete":
		delete(w.stored, c.Key)
		return
	case "bookmark":
		return
	}
	w.stored[c.Key] = rv
}

// otherAgentReports lets another agent report for a while. It ends with a bookmark that our
// box does not know.
func (w *simulation) otherAgentReports() {
	w.keepBookmark()
	upTo := w.mark + w.rnd.IntN(w.rv-w.mark+1)
	for _, c := range w.log {
		var rv int
		if fmt.Sscan(string(c.Mark), &rv); rv > w.mark && rv <= upTo {
			w.store(c, rv)
		}
	}
	w.bookmark = "b"
}

// keepBookmark lets the server store the bookmark that it has in memory, or forget it.
func (w *simulation) keepBookmark() {
	if w.held > 0 && w.rnd.IntN(2) == 0 {
		w.mark = w.held
	}
	w.held = 0
}

func (w *simulation) reconnect() {
	w.inflight, w.commits = nil, 0
	w.box.Rewind()
	w.openOutdated(w.term)
	w.term++
	w.box.Recall("a", w.term)
	w.keepBookmark()
	if w.rnd.IntN(4) == 0 {
		w.otherAgentReports()
	}
	w.open()
}

// reassign lets the server assign the account again over the same connection, after another agent perhaps.
// The box learns of it before acknowledgements that come later.
func (w *simulation) reassign() {
	w.term++
	w.box.Recall("a", w.term)
	w.keepBookmark()
	if w.rnd.IntN(4) == 0 {
		w.otherAgentReports()
	}
	if w.rnd.IntN(2) == 0 { // the account is still busy
		w.change()
		w.commit()
		w.box.Ack(w.commits)
		w.send()
	}
	w.open()
}

// openOutdated lets the account handle an assignment that another one, or a lost connection, has made outdated.
func (w *simulation) openOutdated(term vedette.Term) {
	if w.rnd.IntN(4) != 0 {
		return
	}
	marks := map[vedette.Feed]vedette.Mark{pods: vedette.Mark(fmt.Sprint(w.mark) + w.bookmark)}
	if restart, ok := w.box.Open("a", term, marks); ok || restart != nil {
		w.t.Fatalf("opened the outdated term %d", term)
	}
	w.change()
	w.send()
	w.commit()
	w.box.Ack(w.commits)
}

// open resumes. If the box cannot, it replays the cluster's log from the server's mark, as a
// watch does.
func (w *simulation) open() {
	marks := map[vedette.Feed]vedette.Mark{pods: vedette.Mark(fmt.Sprint(w.mark) + w.bookmark)}
	from := w.mark
	w.openOutdated(w.term - 1)
	restart, ok := w.box.Open("a", w.term, marks)
	if !ok {
		w.t.Fatalf("term %d is outdated", w.term)
	}
	for feed, mark := range restart {
		if w.rnd.IntN(2) == 0 { // the reader does not know yet
			w.change()
			w.send()
			w.commit()
		}
		w.box.ResumeFeed("a", feed, mark)
		for _, c := range w.log {
			var rv int
			if fmt.Sscan(string(c.Mark), &rv); rv > from {
				putAll(w.t, w.box, c)
			}
		}
	}
}

func (w *simulation) deliverAll() {
	w.reconnect()
	for range 400 {
		w.inflight = append(w.inflight, w.box.take(1<<30)...)
		for len(w.inflight) > 0 {
			w.apply(w.inflight[0])
		}
		w.box.Ack(w.commits)
		time.Sleep(time.Minute) // for large changes
	}
}

// TestPendingSinceCountsBlockedPuts checks that PendingSince counts changes that wait in Put,
// although no change waits to be taken.
func TestPendingSinceCountsBlockedPuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(200)
		open(b, 1, nil)
		putAll(t, b, change(pods, Live, "x", "1"))
		if taken, err := b.Take(t.Context(), 1<<10); err != nil || len(taken) != 1 {
			t.Fatal(taken, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		go func() { _ = b.Put(ctx, change(pods, Live, "canceled", "2")) }()
		time.Sleep(30 * time.Second)
		go func() { _ = b.Put(t.Context(), change(pods, Live, "y", "3")) }()
		time.Sleep(30 * time.Second)
		if pending := time.Since(b.PendingSince()); pending != time.Minute {
			t.Errorf("got %v pending, want 1m0s", pending)
		}
		time.Sleep(time.Minute)
		if pending := time.Since(b.PendingSince()); pending != 90*time.Second {
			t.Errorf("got %v pending, want 1m30s", pending)
		}
		b.Ack(1)
		synctest.Wait()
		if pending := time.Since(b.PendingSince()); pending != 90*time.Second {
			t.Errorf("got %v pending, want the time in Put to count", pending)
		}
		if taken, err := b.Take(t.Context(), 1<<10); err != nil || records(taken) != "y@3" {
			t.Fatal(taken, err)
		}
		if pending := time.Since(b.PendingSince()); pending != 0 {
			t.Errorf("got %v pending, want none", pending)
		}
	})
}

// TestPendingSinceCountsPausedAccounts checks that PendingSince counts changes that wait for their account to be assigned
// again after a lost connection, so that nobody takes what the server has for up to date.
func TestPendingSinceCountsPausedAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1 << 20)
		check := func(when string, want time.Duration) {
			t.Helper()
			if got := time.Since(b.PendingSince()); got != want {
				t.Errorf("%s: got %v pending, want %v", when, got, want)
			}
		}
		open(b, 1, nil)
		putAll(t, b, change(pods, Live, "x", "1"))
		if taken, err := b.Take(t.Context(), 1<<10); err != nil || len(taken) != 1 {
			t.Fatal(taken, err)
		}
		time.Sleep(time.Minute)
		check("sent", 0)
		b.Rewind()
		check("after the connection was lost", time.Minute)
		b.Recall("a", 2)
		check("assigned, but not open", time.Minute)
		b.Recall("a", 0)
		check("assigned to another agent", 0)
		open(b, 3, nil)
		check("open again", 0) // the feed starts again
	})
}

// open lets the server assign account a, and the account handle that. It returns what Open does.
func open(b *Box, term vedette.Term, marks map[vedette.Feed]vedette.Mark) (restart map[vedette.Feed]vedette.Mark) {
	b.Recall("a", term)
	restart, _ = b.Open("a", term, marks)
	return restart
}

// TestForgottenBookmark checks that a feed goes on when the server only knows the mark before a bookmark, and restarts from any other mark.
func TestForgottenBookmark(t *testing.T) {
	for _, tt := range []struct {
		mark     vedette.Mark
		restarts bool
	}{{"5", false}, {"7", false}, {"6", true}, {"4", true}, {"", true}} {
		b := New(1 << 20)
		b.Recall("a", 1)
		b.Open("a", 1, map[vedette.Feed]vedette.Mark{pods: "4"})
		bookmark := change(pods, Live, "bookmark", "7")
		bookmark.IsBookmark = true
		putAll(t, b, change(pods, Live, "x", "5"))
		takeAll(t, b)
		putAll(t, b, bookmark)
		takeAll(t, b)
		b.Ack(2)
		b.Rewind()
		b.Recall("a", 2)
		restart, ok := b.Open("a", 2, map[vedette.Feed]vedette.Mark{pods: tt.mark})
		if _, restarts := restart[pods]; !ok || restarts != tt.restarts {
			t.Errorf("the server has the mark %q after 5 and a bookmark of 7: got restarts %v, want whether it restarts: %v", tt.mark, restart, tt.restarts)
		}
	}
}
