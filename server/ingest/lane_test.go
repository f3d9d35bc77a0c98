package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

var pods = vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}

// agent hears what a lane replies.
type agent struct {
	mu    sync.Mutex
	heard heard
}

type heard struct {
	acked uint64
	void  error
	fresh time.Time

	stalled error // nil once it goes on
}

// now returns what was heard so far.
func (a *agent) now() heard {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heard
}

func (a *agent) note(set func(*heard)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	set(&a.heard)
}

func (a *agent) Ack(n uint64) error {
	a.note(func(h *heard) { h.acked = n })
	return nil
}
func (a *agent) Index(vedette.AccountName, vedette.Feed, []uint64, bool) error { return nil }
func (a *agent) Void(_ vedette.AccountName, _ vedette.Term, reason error) {
	a.note(func(h *heard) { h.void = reason })
}
func (a *agent) Fresh(at time.Time) { a.note(func(h *heard) { h.fresh = at }) }
func (a *agent) Stalled(_ vedette.AccountName, reason error) {
	a.note(func(h *heard) { h.stalled = reason })
}
func (a *agent) Resumed(vedette.AccountName) { a.note(func(h *heard) { h.stalled = nil }) }

// stage is a store with an account whose Pods are declared, and a lane to it
// through whatever stands before it.
func stage(t *testing.T, before func(*store.Store) writer) (*store.Store, *Lane, *agent, vedette.Term) {
	t.Helper()
	ctx := context.Background()
	st, err := store.Open(ctx, store.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "v.db")})
	if err != nil {
		t.Fatal(err)
	}
	term := registered(t, st)
	a := &agent{}
	log := slog.New(slog.DiscardHandler)
	return st, New(Config{}, before(st), NewHub(), log).Lane("host", a, log), a, term
}

// registered registers an account whose Pods are declared.
func registered(t *testing.T, st *store.Store) vedette.Term {
	t.Helper()
	ctx := context.Background()
	if _, err := st.Register(ctx, vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}}); err != nil {
		t.Fatal(err)
	}
	term, err := st.Acquire(ctx, "prod", store.Holder{Agent: "a", Server: "s"})
	if err != nil {
		t.Fatal(err)
	}
	feeds := []store.DeclaredFeed{{Feed: pods, Resource: vedette.Resource{Kind: pods.Kind, Version: "v1", Plural: "pods", Namespaced: true}}}
	if _, err := st.Declare(ctx, "prod", term, feeds, nil); err != nil {
		t.Fatal(err)
	}
	return term
}

func itself(st *store.Store) writer { return st }

func upsert(term vedette.Term, name string, version int) Step {
	return Step{Type: Upsert, Account: "prod", Term: term, Feed: pods, Size: 100, Mark: vedette.Mark(fmt.Sprint(version)), Object: vedette.Object{
		Key: vedette.Key{Kind: pods.Kind, Namespace: "default", Name: name}, UID: "uid-" + name, ResourceVersion: fmt.Sprint(version), Body: []byte("{}"),
	}}
}

// run commits what was put, and ends.
func run(t *testing.T, l *Lane) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	synctest.Wait()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the lane ended with %v", err)
	}
}

func stored(t *testing.T, st *store.Store) map[string]string {
	t.Helper()
	page, err := st.Objects(context.Background(), store.Query{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, row := range page.Items {
		found[row.Name] = row.ResourceVersion
	}
	return found
}

func putAll(t *testing.T, l *Lane, steps ...Step) {
	t.Helper()
	for _, s := range steps {
		if err := l.Put(context.Background(), s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOneBadObjectIsLeftOutOfItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, l, a, term := stage(t, itself)
		defer st.Close()
		for i := range 20 {
			name := fmt.Sprint("o", i)
			if i == 7 {
				name = "bad\x00name"
			}
			putAll(t, l, upsert(term, name, i+1))
		}
		run(t, l)
		if got := stored(t, st); len(got) != 19 || a.now().acked != 20 || a.now().void != nil {
			t.Errorf("%d objects are stored, %d records acknowledged, void: %v; want 19, 20 and no void", len(got), a.now().acked, a.now().void)
		}
		if n := l.in.Refused(); n != 1 {
			t.Errorf("%d objects were counted as left out", n)
		}
		feeds, err := st.Feeds(context.Background(), "prod")
		if err != nil || feeds[0].Mark != "20" {
			t.Errorf("the mark is %+v, %v; want 20", feeds, err)
		}
	})
}

// away is a store whose database does not answer the first few times.
type away struct {
	*store.Store
	mu    sync.Mutex
	times int
}

func (w *away) Commit(ctx context.Context, b store.Batch) ([]store.Change, error) {
	w.mu.Lock()
	w.times--
	gone := w.times >= 0
	w.mu.Unlock()
	if gone {
		return nil, vedette.Errorf(vedette.Unavailable, "the database is away")
	}
	return w.Store.Commit(ctx, b)
}

func TestChangesWaitForTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, l, a, term := stage(t, func(st *store.Store) writer { return &away{Store: st, times: 5} })
		defer st.Close()
		putAll(t, l, upsert(term, "web", 1))
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		synctest.Wait()
		if a.now().acked != 0 || len(stored(t, st)) != 0 {
			t.Errorf("%d records are acknowledged while the database is away", a.now().acked)
		}
		time.Sleep(time.Minute) // the bubble's
		synctest.Wait()
		if a.now().acked != 1 || stored(t, st)["web"] != "1" || a.now().void != nil {
			t.Errorf("%d records acknowledged, %v stored, void %v after the database is back", a.now().acked, stored(t, st), a.now().void)
		}
		cancel()
		<-done
	})
}

func TestAnAccountThatWasTakenIsVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, l, a, term := stage(t, itself)
		defer st.Close()
		if _, err := st.Acquire(context.Background(), "prod", store.Holder{Agent: "b", Server: "s"}); err != nil {
			t.Fatal(err)
		}
		putAll(t, l, upsert(term, "late", 1))
		run(t, l)
		if len(stored(t, st)) != 0 || !errors.Is(a.now().void, store.ErrTerm) || a.now().acked != 1 {
			t.Errorf("%v stored, void %v, %d acknowledged; want nothing, ErrTerm and 1", stored(t, st), a.now().void, a.now().acked)
		}
	})
}

// TestFreshnessFollowsTheCommit asks that a pulse counts only once what stood
// before it is stored.
func TestFreshnessFollowsTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, l, a, term := stage(t, func(st *store.Store) writer { return &away{Store: st, times: 1} })
		defer st.Close()
		at := time.Now()
		putAll(t, l, upsert(term, "web", 1), Step{Type: Pulse, Time: at})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		synctest.Wait()
		if !a.now().fresh.IsZero() {
			t.Error("the account is called fresh before its change is stored")
		}
		time.Sleep(10 * time.Second) // the bubble's
		synctest.Wait()
		if !a.now().fresh.Equal(at) {
			t.Errorf("fresh at %v, want %v", a.now().fresh, at)
		}
		cancel()
		<-done
	})
}

// TestWhatIsWrittenIsNotDropped has a batch that holds an object which can't be stored,
// so that it is stored in pieces. It tells of another one that a snapshot had not
// found, and the watch did, as it was.
func TestWhatIsWrittenIsNotDropped(t *testing.T) {
	for range 10 { // the pieces differ
		synctest.Test(t, func(t *testing.T) {
			st, l, _, term := stage(t, itself)
			defer st.Close()
			putAll(t, l, upsert(term, "web", 1))
			for i := range 4 {
				putAll(t, l, upsert(term, fmt.Sprint("gone", i), 1))
			}
			run(t, l)
			l = l.in.Lane("host", &agent{}, l.log)
			drop := Step{Type: Drop, Account: "prod", Term: term, Feed: pods, Digests: []uint64{vedette.Digest("uid-web", "1")}}
			for i := range 4 {
				drop.Digests = append(drop.Digests, vedette.Digest(fmt.Sprint("uid-gone", i), "1"))
			}
			putAll(t, l, drop, upsert(term, "web", 1), upsert(term, "bad\x00name", 2), upsert(term, "new", 3))
			run(t, l)
			if got := stored(t, st); fmt.Sprint(got) != "map[new:3 web:1]" {
				t.Errorf("stored are %v; want web at 1 and new at 3", got)
			}
		})
	}
}

// parted is a store that stops to answer when it has stored a part.
type parted struct {
	*store.Store
	stopped bool
}

func (w *parted) Commit(ctx context.Context, b store.Batch) ([]store.Change, error) {
	if w.stopped {
		return w.Store.Commit(ctx, b)
	}
	w.stopped = true
	changes, err := w.Store.Commit(ctx, store.Batch{Account: b.Account, Term: b.Term, Upserts: b.Upserts[:1]})
	return changes, errors.Join(err, vedette.Errorf(vedette.Unavailable, "the database is away"))
}

// TestAPartIsTold holds that what was stored before the database went away is told to
// those who follow, who would not hear of it when the rest is.
func TestAPartIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, l, _, term := stage(t, func(st *store.Store) writer { return &parted{Store: st} })
		defer st.Close()
		follows := l.in.hub.Subscribe(func(store.Change) bool { return true })
		putAll(t, l, upsert(term, "web", 1), upsert(term, "db", 2))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		time.Sleep(time.Second) // the bubble's
		synctest.Wait()
		if got := len(follows.Changes()); got != 2 {
			t.Errorf("%d changes were told, want 2", got)
		}
		cancel()
		<-done
	})
}
