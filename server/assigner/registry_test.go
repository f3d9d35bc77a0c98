package assigner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store/admission"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/test/logbuffer"
)

// memoryStore is a store in memory that can hang.
type memoryStore struct {
	mu         sync.Mutex
	rows       map[vedette.AccountName]*registry.Account
	seenCounts []int               // number of accounts in each call of RecordLastSeen
	sightings  []registry.LastSeen // with which it was called
	shared     []time.Time         // stored by RecordSharedFreshness
	stored     []registry.LastSeen
	failTake   func() error                          // if set, makes Acquire fail after it took effect
	locked     map[vedette.AccountName]chan struct{} // accounts whose Release waits until the channel is closed
	lockedRows map[vedette.AccountName]bool          // accounts that cannot be registered
	writers    *admission.Semaphore                  // of registrations; may be nil
	hung       chan struct{}                         // closed when the store answers again; nil while it answers
	objects    map[vedette.AccountName]int64
	notLive    map[vedette.AccountName]bool // accounts of objects whose feeds are not live
	denied     map[vedette.AccountName][]vedette.Kind
	feeds      map[vedette.AccountName][]read.FeedStatus // instead of those made of the others
}

func (m *memoryStore) setFeeds(name vedette.AccountName, feeds ...read.FeedStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.feeds = map[vedette.AccountName][]read.FeedStatus{name: feeds}
}

// waitWhileHung waits until the store answers.
func (m *memoryStore) waitWhileHung(ctx context.Context) error {
	m.mu.Lock()
	hung := m.hung
	m.mu.Unlock()
	if hung == nil {
		return nil
	}
	select {
	case <-hung:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *memoryStore) hang() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hung = make(chan struct{})
}

func (m *memoryStore) resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.hung)
	m.hung = nil
}

func (m *memoryStore) Register(ctx context.Context, a vedette.Account) (registry.Account, error) {
	if err := m.waitWhileHung(ctx); err != nil {
		return registry.Account{}, err
	}
	if m.writers != nil {
		permit, err := m.writers.Acquire(ctx)
		if err != nil {
			return registry.Account{}, err
		}
		defer permit.Release()
	}
	m.mu.Lock()
	isLocked := m.lockedRows[a.Name]
	m.mu.Unlock()
	if isLocked {
		<-ctx.Done()
		return registry.Account{}, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	row := m.rows[a.Name]
	if row == nil {
		row = &registry.Account{Account: a, Registered: time.Now()}
		m.rows[a.Name] = row
	}
	if !row.Cluster.Same(a.Cluster) {
		return registry.Account{}, vedette.Errorf(vedette.Conflict, "the name belongs to %s", row.Cluster)
	}
	return *row, nil
}

func (m *memoryStore) Acquire(ctx context.Context, account vedette.AccountName, h registry.CacherClaim) (vedette.Term, error) {
	if err := m.waitWhileHung(ctx); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	row := m.rows[account]
	if m.failTake != nil {
		if err := m.failTake(); err != nil {
			return 0, err
		}
	}
	permissions, namespaces := row.Properties.Permissions, row.Namespaces
	row.Account, row.Holder = *h.Account, h.Agent
	if h.KeepNamespaces {
		row.Namespaces = namespaces
	}
	if h.KeepPermissions {
		row.Properties.Permissions = permissions
	} else {
		row.PermittedBy = h.Agent
	}
	row.Term++
	return row.Term, nil
}

func (m *memoryStore) Release(ctx context.Context, account vedette.AccountName, term vedette.Term, _ vedette.ServerID) error {
	if err := m.waitWhileHung(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	locked := m.locked[account]
	m.mu.Unlock()
	if locked != nil {
		<-locked
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if row := m.rows[account]; row != nil && row.Term == term {
		row.Holder = ""
	}
	return nil
}

func (m *memoryStore) ReleaseServer(context.Context, vedette.ServerID) error { return nil }

func (m *memoryStore) Assigned(context.Context, []vedette.AccountName) ([]registry.Assigned, error) {
	return nil, nil
}

func (m *memoryStore) Unassigned(context.Context, []vedette.AccountName) ([]registry.Assigned, error) {
	return nil, nil
}

func (m *memoryStore) RecordLastSeen(ctx context.Context, sightings []registry.LastSeen) error {
	m.mu.Lock()
	m.seenCounts = append(m.seenCounts, len(sightings))
	m.sightings = append(m.sightings, sightings...)
	m.mu.Unlock()
	if err := m.waitWhileHung(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stored = append(m.stored, sightings...)
	return nil
}

func (m *memoryStore) RecordSharedFreshness(ctx context.Context, at time.Time, joining []registry.LastSeen) error {
	m.mu.Lock()
	m.seenCounts = append(m.seenCounts, len(joining))
	m.mu.Unlock()
	if err := m.waitWhileHung(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shared = append(m.shared, at)
	m.stored = append(m.stored, joining...)
	return nil
}

func (m *memoryStore) StoreMarks(ctx context.Context, _ vedette.AccountName) error {
	return m.waitWhileHung(ctx)
}

func (m *memoryStore) Marks(ctx context.Context, name vedette.AccountName) ([]read.FeedStatus, error) {
	if err := m.waitWhileHung(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	objects, known := m.objects[name]
	if !known {
		return m.feeds[name], nil
	}
	state := vedette.FeedLive
	if m.notLive[name] {
		state = vedette.FeedSyncing
	}
	feeds := []read.FeedStatus{{Account: name, Feed: vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}, Mark: "1", State: state, Objects: objects}}
	for _, kind := range m.denied[name] {
		feeds = append(feeds, read.FeedStatus{Account: name, Feed: vedette.Feed{Kind: kind}, State: vedette.FeedDenied})
	}
	return feeds, nil
}

func (m *memoryStore) AccountSizes(ctx context.Context) (map[vedette.AccountName]int64, error) {
	if err := m.waitWhileHung(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.objects), nil
}

func (m *memoryStore) ReleaseAll(ctx context.Context) error { return m.waitWhileHung(ctx) }

func (m *memoryStore) row(name vedette.AccountName) registry.Account {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *m.rows[name]
}

// roleRecorder records the roles that an agent was given, in order.
type roleRecorder struct {
	mu    sync.Mutex
	roles []assignment.Role
}

func (r *roleRecorder) assign(a assignment.Assignment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roles = append(r.roles, a.Role)
}

func (r *roleRecorder) last() assignment.Role {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.roles) == 0 {
		return ""
	}
	return r.roles[len(r.roles)-1]
}

// fixture is a registry that runs in a synctest bubble.
type fixture struct {
	*Registry
	*memoryStore
	log *logbuffer.Buffer
	t   *testing.T
}

// hasLine reports whether a line of the log contains all parts.
func (w fixture) hasLine(parts ...string) bool { return w.countLines(parts...) > 0 }

// countLines returns how many lines of the log contain all parts, when all are written.
func (w fixture) countLines(parts ...string) int {
	synctest.Wait()
	return len(w.log.Lines(parts...))
}

func withFixture(t *testing.T, test func(t *testing.T, w fixture)) {
	withConfig(t, assignment.Config{}, test)
}

func withConfig(t *testing.T, cfg assignment.Config, test func(t *testing.T, w fixture)) {
	synctest.Test(t, func(t *testing.T) {
		memory := &memoryStore{rows: map[vedette.AccountName]*registry.Account{}}
		logs := &logbuffer.Buffer{}
		r := New("s1", cfg, memory, memory, slog.New(slog.NewTextHandler(logs, nil)))
		defer r.Close()
		w := fixture{r, memory, logs, t}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		test(t, w)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (w fixture) connect(id vedette.AgentID) (*Member, *roleRecorder) {
	recorder := &roleRecorder{}
	return w.Join(assignment.Agent{ID: id}, recorder.assign), recorder
}

func (w fixture) register(m *Member, permissions *vedette.Permissions) {
	w.t.Helper()
	if err := m.Register(w.t.Context(), prodAccount(permissions)); err != nil {
		w.t.Error(err)
	}
}

func prodAccount(permissions *vedette.Permissions) vedette.Account {
	return vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}, Properties: vedette.Properties{Permissions: permissions}}
}

var devPermissions = &vedette.Permissions{Read: []string{"dev"}}

// TestReadsDoNotWaitForStore hangs the store at each moment in which an account changes hands, and
// checks that readers do not wait.
func TestReadsDoNotWaitForStore(t *testing.T) {
	for name, hang := range map[string]func(ctx context.Context, w fixture, first, second *Member){
		"a registration": func(ctx context.Context, _ fixture, _, second *Member) {
			_ = second.Register(ctx, prodAccount(devPermissions))
		},
		"an agent that registers again": func(ctx context.Context, _ fixture, first, _ *Member) {
			_ = first.Register(ctx, prodAccount(devPermissions))
		},
		"an agent that leaves":      func(ctx context.Context, _ fixture, first, _ *Member) { first.Leave(ctx) },
		"an agent that deregisters": func(ctx context.Context, _ fixture, first, _ *Member) { first.Deregister(ctx, "prod") },
		"an agent that is revoked":  func(ctx context.Context, _ fixture, first, _ *Member) { first.Revoke(ctx, "prod", 1, errors.New("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			withFixture(t, func(t *testing.T, w fixture) {
				first, _ := w.connect("a1")
				second, recorder := w.connect("a2")
				w.register(first, devPermissions)
				w.hang()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				go hang(ctx, w, first, second)
				synctest.Wait()
				start, done := time.Now(), make(chan struct{})
				go func() {
					defer close(done)
					w.Freshness("prod")
					w.Cacher("prod")
					first.Roles()
					w.Members()
					w.Load()
				}()
				select {
				case <-done:
				case <-time.After(10 * time.Second):
				}
				if waited := time.Since(start); waited > 0 {
					t.Errorf("readers waited for the store for at least %v", waited)
				}
				w.resume()
				w.register(second, devPermissions)
				time.Sleep(5 * time.Second)
				if m, _ := w.Cacher("prod"); m == nil || recorder.last() == "" {
					t.Error("the account has no cacher at the end")
				}
			})
		})
	}
}

// TestLeaveWhileStoreHangs checks that an agent that has left is never shown as the cacher, and
// that the next agent gets the account when the store answers again.
func TestLeaveWhileStoreHangs(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		first, _ := w.connect("a1")
		second, recorder := w.connect("a2")
		w.hang()
		go func() { _ = first.Register(context.WithoutCancel(t.Context()), prodAccount(devPermissions)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		first.Leave(ctx)
		w.resume()
		synctest.Wait()
		if m, _ := w.Cacher("prod"); m != nil {
			t.Errorf("%s is the cacher, but has left", m.ID)
		}
		w.register(second, devPermissions)
		if recorder.last() != assignment.Cacher {
			t.Errorf("the next agent got role %q", recorder.last())
		}
	})
}

// TestLostStoreResponse hides from the registry whether the store made an agent the cacher, and
// lets the agent leave. The store must not keep it as the cacher.
func TestLostStoreResponse(t *testing.T) {
	for _, tt := range []struct {
		name              string
		wasCacher, stored bool
	}{{"cacher, no effect", true, false}, {"a cacher, done", true, true}, {"a newcomer, done", false, true}} {
		t.Run(tt.name, func(t *testing.T) {
			withFixture(t, func(t *testing.T, w fixture) {
				m, _ := w.connect("a1")
				if tt.wasCacher {
					w.register(m, devPermissions)
				}
				w.failTake = func() error {
					if tt.stored {
						w.rows["prod"].Term++
						w.rows["prod"].Holder = "a1"
					}
					return context.Canceled
				}
				if err := m.Register(t.Context(), prodAccount(devPermissions)); err == nil {
					t.Error("Register succeeded, want an error")
				}
				m.Leave(t.Context())
				time.Sleep(3 * time.Second) // bubble time
				if row := w.row("prod"); row.Holder != "" {
					t.Errorf("%q is stored as the cacher, but has left", row.Holder)
				}
			})
		})
	}
}

// TestAccountsAreIndependent locks accounts in the database and lets the cacher of another account
// leave. The next agent must get the other account soon.
func TestAccountsAreIndependent(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		first, _ := w.connect("a1")
		second, recorder := w.connect("a2")
		other := vedette.Account{Name: "other", Cluster: vedette.Cluster{UID: "o"}}
		for _, m := range []*Member{first, second} {
			w.register(m, devPermissions)
			if err := m.Register(t.Context(), other); err != nil {
				t.Fatal(err)
			}
		}
		locked := make(chan struct{})
		w.set(func() { w.locked = map[vedette.AccountName]chan struct{}{"prod": locked} })
		go first.Leave(t.Context())
		synctest.Wait()
		if recorder.last() != assignment.Cacher {
			t.Errorf("the agent of the other account got role %q", recorder.last())
		}
		if m, _ := w.Cacher("prod"); m != nil {
			t.Errorf("got cacher %v of an account that is locked", m)
		}
		close(locked)
		synctest.Wait()
		if m, _ := w.Cacher("prod"); m != second {
			t.Errorf("got cacher %v when the account is not locked any more", m)
		}
	})
}

// TestWiderPermissionsWait lets an agent without permissions take over.
func TestWiderPermissionsWait(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		first, _ := w.connect("a1")
		second, recorder := w.connect("a2")
		w.register(first, devPermissions)
		w.register(second, nil)
		if p := w.row("prod").Properties.Permissions; p.AllowsMoreThan(devPermissions) {
			t.Errorf("a standby changed the permissions to %s", p)
		}
		if notice := second.Roles()["prod"].Message; !strings.Contains(notice, "READ [dev] is in effect, not open to everyone") {
			t.Errorf("notice for operators: got %q", notice)
		}
		if !w.hasLine("level=WARN", "standby registers other account properties", "agent=a2", "open to everyone") {
			t.Errorf("the log does not name the standby:\n%s", w.log.String())
		}
		first.Leave(t.Context())
		if recorder.last() != assignment.Cacher {
			t.Fatal("the second agent did not take over")
		}
		if !w.hasLine("level=WARN", "security: wider permissions pending", "agent=a2", "author=a1") || w.hasLine("permissions widened") {
			t.Errorf("log of the pending permissions:\n%s", w.log.String())
		}
		w.register(second, nil) // registering again must not end the wait
		time.Sleep(maxIncreaseTicks*time.Second - 10*time.Second)
		if p := w.row("prod").Properties.Permissions; p.AllowsMoreThan(devPermissions) {
			t.Errorf("the permissions were changed to %s before the wait ended", p)
		}
		if notice := second.Roles()["prod"].Notice; !strings.Contains(notice, "pending") {
			t.Errorf("notice for operators: got %q", notice)
		}
		time.Sleep(20 * time.Second)
		if p := w.row("prod").Properties.Permissions; p != nil {
			t.Errorf("the permissions are still %s, but the first agent has not come back", p)
		}
		if !w.hasLine("level=WARN", "security: account permissions widened", "agent=a2", `before="READ [dev]"`, `after="open to everyone"`) {
			t.Errorf("log of the widened permissions:\n%s", w.log.String())
		}
	})
}

// TestNoticesAreLoggedOnce lets agents repeat a registration that is refused or differs from the
// stored one.
func TestNoticesAreLoggedOnce(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		first, _ := w.connect("a1")
		second, _ := w.connect("a2")
		otherCluster, recorder := w.connect("x")
		w.register(first, devPermissions)
		other := prodAccount(nil)
		other.Cluster.UID = "another"
		for range 50 {
			w.register(second, nil)
			if err := otherCluster.Register(t.Context(), other); err != nil || recorder.last() != assignment.Refused {
				t.Fatalf("the agent of another cluster got role %q, error %v", recorder.last(), err)
			}
		}
		if n := w.countLines("level=WARN"); n != 2 {
			t.Errorf("got %d warnings, want one for each agent:\n%s", n, w.log.String())
		}
	})
}

// TestUnusedAccountsAreForgotten registers names that are not used again, while other agents come and
// go.
func TestUnusedAccountsAreForgotten(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		var agents sync.WaitGroup
		for n := range 4 {
			agents.Go(func() {
				for i := range 100 {
					m, recorder := w.connect(vedette.AgentID(fmt.Sprint("a", n)))
					account := prodAccount(devPermissions)
					account.Name = vedette.AccountName(fmt.Sprint("name-", (n+i)%5))
					if err := m.Register(t.Context(), account); err != nil || recorder.last() == "" {
						t.Errorf("got error %v after role %q", err, recorder.last())
					}
					time.Sleep(time.Duration(i%3) * time.Second)
					m.Leave(t.Context())
					time.Sleep(time.Duration(i%4) * time.Second)
				}
			})
		}
		agents.Wait()
		time.Sleep(3 * time.Second)
		if n := len(w.holders()); n != 0 {
			t.Errorf("got %d accounts that no agent uses, want 0", n)
		}
	})
}

// TestNamespacesAreStoredNotCached checks that namespaces are stored and not kept in memory.
func TestNamespacesAreStoredNotCached(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		first, _ := w.connect("a1")
		second, recorder := w.connect("a2")
		account := prodAccount(devPermissions)
		account.Namespaces = []string{"default", "shop"}
		for _, m := range []*Member{first, second} {
			if err := m.Register(t.Context(), account); err != nil {
				t.Fatal(err)
			}
			if kept := w.fleet.Registered(m.id, "prod").Namespaces; kept != nil {
				t.Errorf("namespaces of %s are in memory: %q", m.ID, kept)
			}
		}
		first.Leave(t.Context())
		if recorder.last() != assignment.Cacher || len(w.row("prod").Namespaces) != 2 {
			t.Errorf("got role %q and namespaces %q", recorder.last(), w.row("prod").Namespaces)
		}
	})
}

// TestWideningNeedsAllAgents widens the permissions in the configuration of two agents, one after
// the other.
func TestWideningNeedsAllAgents(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		wide := &vedette.Permissions{Read: []string{"dev", "ops"}}
		first, _ := w.connect("a1")
		second, _ := w.connect("a2")
		w.register(first, devPermissions)
		w.register(second, devPermissions)
		w.register(first, wide)
		time.Sleep(20 * time.Minute)
		if p := w.row("prod").Properties.Permissions; p.AllowsMoreThan(devPermissions) {
			t.Errorf("the permissions are %s, but the second agent asks for narrower ones", p)
		}
		w.register(second, wide)
		time.Sleep(3 * time.Second)
		if p := w.row("prod").Properties.Permissions; wide.AllowsMoreThan(p) {
			t.Errorf("the permissions are %s, but both agents agree on wider ones", p)
		}
	})
}

// TestUnregisteredAccountsTakeNoMemory checks that account names that an agent invents take no memory
// after the agent has left.
func TestUnregisteredAccountsTakeNoMemory(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		m, _ := w.connect("a")
		w.register(m, nil)
		for i := range 1000 {
			m.SetAccountError(vedette.AccountName(fmt.Sprint("made-up-", i)), AccountError{Message: "unreachable"})
			m.Deregister(t.Context(), vedette.AccountName(fmt.Sprint("made-up-", i)))
			m.SetAccountError(vedette.AccountName(fmt.Sprint("made-up-", i)), AccountError{Message: "unreachable"})
		}
		m.Leave(t.Context())
		if got := len(w.holders()); got != 1 {
			t.Errorf("got %d accounts, want the registered one", got)
		}
	})
}

// TestAccountErrorSurvivesNewRole checks that operators see an account error that arrived before
// the role, as on a new connection, and that it ends with the registration.
func TestAccountErrorSurvivesNewRole(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		m, recorder := w.connect("a")
		m.SetAccountError("prod", AccountError{Kind: vedette.Invalid, Message: "no kind Podd"})
		if a, _ := m.Role("prod"); a.Role != assignment.Reaching || a.Message != "no kind Podd" {
			t.Errorf("before the registration: got %+v", a)
		}
		w.register(m, nil)
		if a, _ := m.Role("prod"); recorder.last() != assignment.Cacher || a.Role != assignment.Cacher || a.Message != "no kind Podd" || a.ErrorKind != vedette.Invalid {
			t.Errorf("after the registration: got %+v, want the cacher with its error", a)
		}
		m.SetAccountError("prod", AccountError{})
		if a, _ := m.Role("prod"); a.Role != assignment.Cacher || a.Message != "" || a.ErrorKind != "" {
			t.Errorf("after the error: got %+v, want the cacher without an error", a)
		}
		m.SetAccountError("prod", AccountError{Kind: vedette.Denied, Message: "no"})
		m.Deregister(t.Context(), "prod")
		if a, ok := m.Role("prod"); ok {
			t.Errorf("after the deregistration: got %+v", a)
		}
	})
}

// Registries is of one database.
func (m *memoryStore) Registries(context.Context, []vedette.AccountName) (map[*registry.Registry][]vedette.AccountName, error) {
	return nil, nil
}
