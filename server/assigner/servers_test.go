package assigner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/membership"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// sharedStore is the accounts in the database of several servers.
type sharedStore struct {
	mu    sync.Mutex
	rows  map[vedette.AccountName]*registry.Account
	reads []int // accounts that each query about who has them has named
}

func (m *sharedStore) Register(_ context.Context, a vedette.Account) (registry.Account, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows[a.Name] == nil {
		m.rows[a.Name] = &registry.Account{Account: a, Registered: time.Now()}
	}
	return *m.rows[a.Name], nil
}

func (m *sharedStore) Acquire(_ context.Context, account vedette.AccountName, h registry.CacherClaim) (vedette.Term, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	row := m.rows[account]
	if row.Term != *h.After {
		return 0, registry.ErrOvertaken
	}
	row.Holder, row.Server = h.Agent, h.Server
	row.Term++
	return row.Term, nil
}

func (m *sharedStore) Release(_ context.Context, account vedette.AccountName, term vedette.Term, server vedette.ServerID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if row := m.rows[account]; row.Term == term && row.Server == server {
		row.Holder, row.Server = "", ""
	}
	return nil
}

func (m *sharedStore) Assigned(_ context.Context, names []vedette.AccountName) (all []registry.Assigned, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads = append(m.reads, len(names))
	for _, name := range names {
		if row := m.rows[name]; row != nil {
			all = append(all, registry.Assigned{Account: name, Term: row.Term, Holder: row.Holder, Server: row.Server})
		}
	}
	return all, nil
}

func (m *sharedStore) Unassigned(ctx context.Context, names []vedette.AccountName) ([]registry.Assigned, error) {
	all, err := m.Assigned(ctx, names)
	return slices.DeleteFunc(all, func(row registry.Assigned) bool { return row.Holder != "" }), err
}

func (m *sharedStore) ReleaseServer(context.Context, vedette.ServerID) error { return nil }

func (m *sharedStore) ReleaseAll(context.Context) error { return nil }

func (m *sharedStore) RecordLastSeen(context.Context, []registry.LastSeen) error { return nil }

func (m *sharedStore) RecordSharedFreshness(context.Context, time.Time, []registry.LastSeen) error {
	return nil
}

func (m *sharedStore) StoreMarks(context.Context, vedette.AccountName) error { return nil }

func (m *sharedStore) Marks(context.Context, vedette.AccountName) ([]read.FeedStatus, error) {
	return []read.FeedStatus{{Feed: vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}, Mark: "1", State: vedette.FeedLive}}, nil
}

func (m *sharedStore) AccountSizes(context.Context) (map[vedette.AccountName]int64, error) {
	return nil, nil
}

func (m *sharedStore) holder(name vedette.AccountName) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	row := m.rows[name]
	return fmt.Sprint(row.Holder, " at ", row.Server)
}

// takeReads returns how many accounts queries have named since the last call.
func (m *sharedStore) takeReads() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	reads := m.reads
	m.reads = nil
	return reads
}

// linked is registries of servers that share a store and listen to each other.
type linked struct {
	*sharedStore

	t       *testing.T
	servers map[vedette.ServerID]*Registry
	changed chan struct{}

	linkMu sync.Mutex
	isCut  bool // nobody hears anybody
}

// withServers runs a test with servers s0 and s1.
func withServers(t *testing.T, cfg assignment.Config, test func(t *testing.T, w *linked)) {
	synctest.Test(t, func(t *testing.T) {
		w := &linked{sharedStore: &sharedStore{rows: map[vedette.AccountName]*registry.Account{}}, t: t, servers: map[vedette.ServerID]*Registry{},
			changed: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		cfg.IsShared = true
		for _, id := range []vedette.ServerID{"s0", "s1"} {
			r := New(id, cfg, w, w, slog.New(slog.DiscardHandler))
			r.Share(Sharing{Servers: w, IsAlive: func(context.Context, vedette.ServerID) bool { return true },
				Listen: func(ctx context.Context, to vedette.ServerID) (func() (Update, error), error) {
					return w.listen(ctx, id, to)
				}})
			w.servers[id] = r
		}
		for _, r := range w.servers {
			running.Go(func() { _ = r.Run(ctx) })
		}
		time.Sleep(time.Second) // they hear each other
		synctest.Wait()
		test(t, w)
		cancel()
		running.Wait()
		for _, r := range w.servers {
			r.Close()
		}
	})
}

func (w *linked) Current() membership.Servers {
	return membership.Servers{"s0": sqldb.SharingServer{ID: "s0", Token: "of-s0"}, "s1": sqldb.SharingServer{ID: "s1", Token: "of-s1"}}
}

func (w *linked) Changed() <-chan struct{} { return w.changed }

var errCut = errors.New("the connection is cut")

func (w *linked) listen(ctx context.Context, server, to vedette.ServerID) (func() (Update, error), error) {
	if w.cut() {
		return nil, errCut
	}
	l := w.servers[to].Listen(server)
	context.AfterFunc(ctx, l.Close)
	return func() (Update, error) {
		update, err := l.Next(ctx)
		if w.cut() {
			return Update{}, errCut
		}
		return update, err
	}, nil
}

func (w *linked) cut() bool {
	w.linkMu.Lock()
	defer w.linkMu.Unlock()
	return w.isCut
}

func (w *linked) setCut(isCut bool) {
	w.linkMu.Lock()
	defer w.linkMu.Unlock()
	w.isCut = isCut
}

// connectedAgent is an agent that is heard until it is frozen.
type connectedAgent struct {
	*Member

	given roleRecorder
}

func (w *linked) join(server vedette.ServerID, id vedette.AgentID, accounts ...vedette.AccountName) *connectedAgent {
	w.t.Helper()
	a := &connectedAgent{}
	a.Member = w.servers[server].Join(assignment.Agent{ID: id}, a.given.assign)
	a.SetAliveInterval(assignment.MinAliveInterval)
	for _, name := range accounts {
		if err := a.Register(w.t.Context(), vedette.Account{Name: name, Cluster: vedette.Cluster{UID: "u"}}); err != nil {
			w.t.Fatal(err)
		}
	}
	synctest.Wait()
	return a
}

func (w *linked) expectHolder(account vedette.AccountName, want string) {
	w.t.Helper()
	synctest.Wait()
	if got := w.holder(account); got != want {
		w.t.Errorf("%s has account %s, want %s", got, account, want)
	}
}

func someAccounts(n int) (names []vedette.AccountName) {
	for i := range n {
		names = append(names, vedette.AccountName(fmt.Sprint("account-", i)))
	}
	return names
}

// TestStandbyAtAnotherServerTakesOverAtOnce ends the agent of accounts. The standby at the other server has them without waiting for the look
// into the database, and while servers hear each other, nothing is read each second.
func TestStandbyAtAnotherServerTakesOverAtOnce(t *testing.T) {
	withServers(t, assignment.Config{}, func(t *testing.T, w *linked) {
		accounts := someAccounts(1200)
		first := w.join("s0", "a", accounts...)
		w.join("s1", "b", accounts...)
		time.Sleep(time.Second)
		w.takeReads()
		time.Sleep(20 * time.Second)
		if reads := w.takeReads(); len(reads) > 2*2*3 {
			t.Errorf("in 20 seconds, two servers read %v accounts, want all in chunks each 10 seconds", reads)
		}
		began := time.Now()
		first.Leave(t.Context())
		for _, name := range accounts {
			w.expectHolder(name, "b at s1")
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v by the fake clock, want no waiting", took)
		}
	})
}

// TestFreeAccountsCostNothing has accounts whose agents are all gone.
func TestFreeAccountsCostNothing(t *testing.T) {
	withServers(t, assignment.Config{}, func(t *testing.T, w *linked) {
		w.join("s0", "a", someAccounts(5000)...).Leave(t.Context())
		w.setCut(true) // also while servers do not hear each other
		time.Sleep(time.Minute)
		w.takeReads()
		time.Sleep(time.Minute)
		if reads := w.takeReads(); len(reads) > 0 {
			t.Errorf("queries have named %v accounts, want none", reads)
		}
	})
}

// TestDatabaseIsTheBackstop cuts servers off from each other. A standby finds in the database, within a second, that its account is free,
// and queries name only the accounts for which it stands by.
func TestDatabaseIsTheBackstop(t *testing.T) {
	withServers(t, assignment.Config{}, func(t *testing.T, w *linked) {
		first := w.join("s0", "a", someAccounts(1000)...)
		w.join("s1", "b", "account-7")
		w.setCut(true)
		time.Sleep(5 * time.Second)
		w.takeReads()
		first.Leave(t.Context())
		time.Sleep(unassignedInterval + assignment.ListenInterval)
		w.expectHolder("account-7", "b at s1")
		for _, n := range w.takeReads() {
			if n > 1 {
				t.Errorf("a query has named %d accounts, want one", n)
			}
		}
		w.setCut(false)
		time.Sleep(5 * time.Second)
		w.join("s0", "c", "account-7")
		if got := w.servers["s0"].fleet.Elsewhere("account-7"); got == nil || got.Server != "s1" {
			t.Errorf("got %+v, want that s1 has the account", got)
		}
	})
}

// TestSilentAgentIsReplacedElsewhere freezes an agent whose account an agent at another server could report.
func TestSilentAgentIsReplacedElsewhere(t *testing.T) {
	withServers(t, assignment.Config{}, func(t *testing.T, w *linked) {
		first, second := w.join("s0", "a", "prod"), w.join("s1", "b", "prod")
		hear := func(d time.Duration, heard ...*connectedAgent) {
			for range d / (100 * time.Millisecond) {
				for _, a := range heard {
					a.EndReceive()
				}
				time.Sleep(100 * time.Millisecond)
				for _, a := range heard {
					a.BeginReceive()
				}
			}
		}
		hear(10*time.Second, first, second)
		if !first.IsShared() || !second.IsShared() {
			t.Error("agents of different servers that share an account are not asked to show that they are alive")
		}
		hear(4*time.Second, second)
		w.expectHolder("prod", "b at s1")
		if first.given.last() != assignment.Standby || second.given.last() != assignment.Cacher {
			t.Errorf("the agents have the roles %s and %s, want standby and cacher", first.given.last(), second.given.last())
		}
		if done := w.servers["s1"].CacherChanges()[assignment.ReasonSilent].Done; done != 1 {
			t.Errorf("counted %d takeovers from silent agents, want 1", done)
		}
	})
}

// TestServerThatDrainsOffersItsAccounts waits for the operation of one of them.
func TestServerThatDrainsOffersItsAccounts(t *testing.T) {
	withServers(t, assignment.Config{}, func(t *testing.T, w *linked) {
		first := w.join("s0", "a", "busy", "idle", "alone")
		w.join("s1", "b", "busy", "idle")
		time.Sleep(2 * time.Second)
		var isBusy atomic.Bool
		isBusy.Store(true)
		w.servers["s0"].SetBusy(func(name vedette.AccountName) bool { return name == "busy" && isBusy.Load() })
		w.servers["s0"].Drain()
		w.expectHolder("idle", "b at s1")
		w.expectHolder("busy", "a at s0")
		w.expectHolder("alone", "a at s0")
		isBusy.Store(false)
		time.Sleep(2 * time.Second)
		w.expectHolder("busy", "b at s1")
		w.servers["s0"].AwaitOffers(t.Context())
		if first.given.last() != assignment.Standby {
			t.Errorf("the agent has the role %s, want standby", first.given.last())
		}
	})
}

// TestListeners checks what a server is told that listens late, or slowly.
func TestListeners(t *testing.T) {
	withServers(t, assignment.Config{}, func(t *testing.T, w *linked) {
		n := 2*MaxUpdates + 1
		w.join("s0", "a", someAccounts(n)...)
		l := w.servers["s0"].Listen("late")
		update := map[vedette.AccountName]assignment.AccountUpdate{}
		next := func(l *Listener) Update {
			all, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range all.Accounts {
				update[a.Account] = a
			}
			return all
		}
		for range 3 {
			if all := next(l); len(all.Accounts) > MaxUpdates {
				t.Fatalf("told of %d accounts at once", len(all.Accounts))
			}
		}
		if len(update) != n || !update["account-0"].IsHeld || update["account-0"].Term != 1 {
			t.Errorf("told of %d accounts, and of the first %+v, want all, held in term 1", len(update), update["account-0"])
		}
		again := w.servers["s0"].Listen("late")
		defer again.Close()
		if _, err := l.Next(t.Context()); !errors.Is(err, ErrReplaced) {
			t.Errorf("got %v, want that the later listener has replaced it", err)
		}
		for i := range 2 * maxOffers {
			w.servers["s0"].decline(assignment.Decline{Server: "late", Account: vedette.AccountName(fmt.Sprint("invented-", i))})
		}
		if n := len(again.declined); n > maxOffers {
			t.Errorf("%d answers wait for a server, want at most %d", n, maxOffers)
		}
	})
}

// Registries is of one database.
func (m *sharedStore) Registries(context.Context, []vedette.AccountName) (map[*registry.Registry][]vedette.AccountName, error) {
	return nil, nil
}
