package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

var pods = vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}

// fakeResponder records the answers of a pipeline.
type fakeResponder struct {
	mu    sync.Mutex
	state response
}

type response struct {
	acked   uint64
	revoked error
	fresh   time.Time

	stalled error // nil after Resumed

	verified []VerifyAnswer
}

// current returns the answers so far.
func (a *fakeResponder) current() response {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

func (a *fakeResponder) update(set func(*response)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	set(&a.state)
}

func (a *fakeResponder) Ack(n uint64) error {
	a.update(func(h *response) { h.acked = n })
	return nil
}
func (a *fakeResponder) Index(vedette.AccountName, vedette.Term, vedette.Feed, []uint64, bool) error {
	return nil
}
func (a *fakeResponder) VerifyAnswer(_ vedette.AccountName, _ vedette.Feed, answer VerifyAnswer) error {
	a.update(func(h *response) { h.verified = append(h.verified, answer) })
	return nil
}
func (a *fakeResponder) Revoke(_ vedette.AccountName, _ vedette.Term, reason error) {
	a.update(func(h *response) { h.revoked = reason })
}
func (a *fakeResponder) SetFresh(at time.Time, _ map[vedette.AccountName]vedette.AccountAge) {
	a.update(func(h *response) { h.fresh = at })
}
func (a *fakeResponder) Stalled(_ vedette.AccountName, reason error) {
	a.update(func(h *response) { h.stalled = reason })
}
func (a *fakeResponder) Resumed(vedette.AccountName) { a.update(func(h *response) { h.stalled = nil }) }

// newTestPipeline returns a store with an account that has declared Pods, and a pipeline that
// writes to it through wrap.
func newTestPipeline(t *testing.T, wrap func(*store.Store) Store) (*store.Store, *Pipeline, *fakeResponder, vedette.Term) {
	t.Helper()
	ctx := context.Background()
	st, err := store.Open(ctx, sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "v.db")})
	if err != nil {
		t.Fatal(err)
	}
	term := registerAccount(t, st)
	a := &fakeResponder{}
	log := slog.New(slog.DiscardHandler)
	return st, New(Config{}, wrap(st), NewHub(), log).NewPipeline("host", a, log), a, term
}

// registerAccount registers an account that has declared Pods.
func registerAccount(t *testing.T, st *store.Store) vedette.Term {
	t.Helper()
	ctx := context.Background()
	if _, err := st.Register(ctx, vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}}); err != nil {
		t.Fatal(err)
	}
	term, err := st.Acquire(ctx, "prod", registry.CacherClaim{Agent: "a", Server: "s"})
	if err != nil {
		t.Fatal(err)
	}
	feeds := []commit.DeclaredFeed{{Feed: pods, Resource: vedette.Resource{Kind: pods.Kind, Version: "v1", Plural: "pods", Namespaced: true}}}
	if _, err := st.Declare(ctx, "prod", term, feeds, nil); err != nil {
		t.Fatal(err)
	}
	return term
}

func passThrough(st *store.Store) Store { return st }

func upsert(term vedette.Term, name string, version int) Step {
	return Step{Type: Upsert, Account: "prod", Term: term, Feed: pods, Size: 100, Mark: vedette.Mark(fmt.Sprint(version)), Object: vedette.Object{
		Key: vedette.Key{Kind: pods.Kind, Namespace: "default", Name: name}, UID: "uid-" + name, ResourceVersion: fmt.Sprint(version), Body: []byte("{}"),
	}}
}

// run commits what was put, and ends the pipeline.
func run(t *testing.T, p *Pipeline) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	synctest.Wait()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: got %v", err)
	}
}

func storedVersions(t *testing.T, st *store.Store) map[string]string {
	t.Helper()
	page, err := st.Objects(context.Background(), read.Query{})
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, row := range page.Items {
		versions[row.Name] = row.ResourceVersion
	}
	return versions
}

func putAll(t *testing.T, p *Pipeline, steps ...Step) {
	t.Helper()
	for _, s := range steps {
		if err := p.Put(context.Background(), s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUnstorableObjectIsOmittedFromItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p, responses, term := newTestPipeline(t, passThrough)
		defer st.Close()
		for i := range 20 {
			name := fmt.Sprint("o", i)
			if i == 7 {
				name = "bad\x00name"
			}
			putAll(t, p, upsert(term, name, i+1))
		}
		run(t, p)
		if got := storedVersions(t, st); len(got) != 19 || responses.current().acked != 20 || responses.current().revoked != nil {
			t.Errorf("got %d objects stored, %d records acknowledged, revoked: %v, want 19, 20 and not revoked", len(got), responses.current().acked, responses.current().revoked)
		}
		if n := p.ingest.Omitted(); n != 1 {
			t.Errorf("got %d objects counted as omitted", n)
		}
		feeds, err := st.Feeds(context.Background(), "prod")
		if err != nil || feeds[0].Mark != "20" {
			t.Errorf("got mark %+v, error %v, want mark 20", feeds, err)
		}
	})
}

// TestOmittedNamesCostLittleMemory omits objects for the length of their names. What is kept of them,
// and the message about them, must be short.
func TestOmittedNamesCostLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p, _, term := newTestPipeline(t, passThrough)
		defer st.Close()
		name := strings.Repeat("x", 1<<20)
		for i := range 3 {
			putAll(t, p, upsert(term, fmt.Sprint(name, i), i+1))
		}
		run(t, p)
		omitted := p.omissions.feeds[accountFeed{"prod", pods}]
		if omitted == nil || len(omitted.keys) != 3 {
			t.Fatalf("got %d omitted objects, want 3", p.ingest.Omitted())
		}
		for key := range omitted.keys {
			if len(key.Name) > maxOmittedName {
				t.Errorf("kept %d bytes of a name", len(key.Name))
			}
		}
		if n := len(omitted.message()); n > 4096 {
			t.Errorf("got a message of %d bytes", n)
		}
		touched := map[vedette.Feed]bool{pods: true}
		for i := range 3 { // deleted in the cluster
			p.omissions.removeStored(&commit.Batch{Account: "prod", Deletes: []commit.Deletion{
				{Key: vedette.Key{Kind: pods.Kind, Namespace: "default", Name: fmt.Sprint(name, i)}}}}, touched)
		}
		if left := p.omissions.feeds[accountFeed{"prod", pods}]; left != nil {
			t.Errorf("got %d omitted objects after their deletion, want none", len(left.keys))
		}
	})
}

// unavailableStore is a store whose database does not answer the first calls.
type unavailableStore struct {
	*store.Store
	mu    sync.Mutex
	times int
}

func (w *unavailableStore) Commit(ctx context.Context, b commit.Batch) ([]commit.Change, error) {
	w.mu.Lock()
	w.times--
	unavailable := w.times >= 0
	w.mu.Unlock()
	if unavailable {
		return nil, vedette.Errorf(vedette.Unavailable, "the database is unavailable")
	}
	return w.Store.Commit(ctx, b)
}

func TestChangesWaitWhileTheDatabaseIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p, responses, term := newTestPipeline(t, func(st *store.Store) Store { return &unavailableStore{Store: st, times: 5} })
		defer st.Close()
		putAll(t, p, upsert(term, "web", 1))
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		synctest.Wait()
		if responses.current().acked != 0 || len(storedVersions(t, st)) != 0 {
			t.Errorf("got %d records acknowledged while the database is unavailable, want 0", responses.current().acked)
		}
		time.Sleep(time.Minute) // bubble time
		synctest.Wait()
		if responses.current().acked != 1 || storedVersions(t, st)["web"] != "1" || responses.current().revoked != nil {
			t.Errorf("got %d records acknowledged, %v stored, revoked %v after the database is back", responses.current().acked, storedVersions(t, st), responses.current().revoked)
		}
		cancel()
		<-done
	})
}

func TestTakenOverAccountIsRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p, responses, term := newTestPipeline(t, passThrough)
		defer st.Close()
		if _, err := st.Acquire(context.Background(), "prod", registry.CacherClaim{Agent: "b", Server: "s"}); err != nil {
			t.Fatal(err)
		}
		putAll(t, p, upsert(term, "late", 1))
		run(t, p)
		if len(storedVersions(t, st)) != 0 || !errors.Is(responses.current().revoked, registry.ErrTerm) || responses.current().acked != 1 {
			t.Errorf("got %v stored, revoked %v, %d acknowledged, want none, ErrTerm and 1", storedVersions(t, st), responses.current().revoked, responses.current().acked)
		}
	})
}

// TestFreshnessIsSetAfterTheCommit checks that a heartbeat counts only after everything before it
// is stored.
func TestFreshnessIsSetAfterTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p, responses, term := newTestPipeline(t, func(st *store.Store) Store { return &unavailableStore{Store: st, times: 1} })
		defer st.Close()
		at := time.Now()
		putAll(t, p, upsert(term, "web", 1), Step{Type: Heartbeat, Time: at})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		synctest.Wait()
		if !responses.current().fresh.IsZero() {
			t.Error("freshness was set before the change was stored")
		}
		time.Sleep(10 * time.Second) // bubble time
		synctest.Wait()
		if !responses.current().fresh.Equal(at) {
			t.Errorf("got fresh at %v, want %v", responses.current().fresh, at)
		}
		cancel()
		<-done
	})
}

// TestUpsertAfterDropIsKept stores a batch in pieces, because it contains an object that cannot be
// stored. The batch drops an object that a snapshot had not found, and then adds it again unchanged
// because the watch reported it.
func TestUpsertAfterDropIsKept(t *testing.T) {
	for range 10 { // the pieces vary
		synctest.Test(t, func(t *testing.T) {
			st, p, _, term := newTestPipeline(t, passThrough)
			defer st.Close()
			putAll(t, p, upsert(term, "web", 1))
			for i := range 4 {
				putAll(t, p, upsert(term, fmt.Sprint("gone", i), 1))
			}
			run(t, p)
			p = p.ingest.NewPipeline("host", &fakeResponder{}, p.log)
			drop := Step{Type: Drop, Account: "prod", Term: term, Feed: pods, Digests: []uint64{vedette.Digest("", "web", "uid-web", "1")}}
			for i := range 4 {
				drop.Digests = append(drop.Digests, vedette.Digest("", "gone", fmt.Sprint("uid-gone", i), "1"))
			}
			putAll(t, p, drop, upsert(term, "web", 1), upsert(term, "bad\x00name", 2), upsert(term, "new", 3))
			run(t, p)
			if got := storedVersions(t, st); fmt.Sprint(got) != "map[new:3 web:1]" {
				t.Errorf("got %v stored, want web at 1 and new at 3", got)
			}
		})
	}
}

// partialStore is a store that fails after it has stored a part.
type partialStore struct {
	*store.Store
	stopped bool
}

func (w *partialStore) Commit(ctx context.Context, b commit.Batch) ([]commit.Change, error) {
	if w.stopped {
		return w.Store.Commit(ctx, b)
	}
	w.stopped = true
	changes, err := w.Store.Commit(ctx, commit.Batch{Account: b.Account, Term: b.Term, Upserts: b.Upserts[:1]})
	return changes, errors.Join(err, vedette.Errorf(vedette.Unavailable, "the database is unavailable"))
}

// TestPartialCommitIsPublished checks that changes that were stored before an error are published
// at once, because the retry does not report them again.
func TestPartialCommitIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p, _, term := newTestPipeline(t, func(st *store.Store) Store { return &partialStore{Store: st} })
		defer st.Close()
		subscription := p.ingest.hub.Subscribe(func(commit.Change) bool { return true })
		defer subscription.Close()
		putAll(t, p, upsert(term, "web", 1), upsert(term, "db", 2))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(time.Second) // bubble time
		synctest.Wait()
		if got := len(subscription.Changes()); got != 2 {
			t.Errorf("got %d changes published, want 2", got)
		}
		cancel()
		<-done
	})
}

// TestHeartbeatsAreLimited checks that a pipeline takes no more heartbeats at a time than other records: each has a few bytes,
// and becomes hundreds.
func TestHeartbeatsAreLimited(t *testing.T) {
	_, p, _, _ := newTestPipeline(t, func(st *store.Store) Store { return st })
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that nobody waits
	for i := range 2 * maxBatchRows {
		grant, err := p.ingest.budget.Acquire(t.Context(), p.source, p.ingest.weight(2))
		if err != nil {
			t.Fatal(err)
		}
		wait, err := p.put(Step{Type: Heartbeat, Size: 2}, grant)
		if err != nil {
			t.Fatal(err)
		}
		if wait != nil {
			grant.Release()
			if i != maxBatchRows {
				t.Errorf("%d heartbeats were taken, want %d", i, maxBatchRows)
			}
			if err := p.Put(ctx, Step{Type: Heartbeat, Size: 2}); err == nil {
				t.Error("another one does not wait")
			}
			return
		}
	}
	t.Errorf("%d heartbeats were taken, want %d", 2*maxBatchRows, maxBatchRows)
}
