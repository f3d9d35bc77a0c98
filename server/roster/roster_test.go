package roster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// ledger is a store in memory that can hang.
type ledger struct {
	mu   sync.Mutex
	rows map[vedette.AccountName]*store.AccountRow
	seen []int         // how many accounts each call of Seen told of
	fail func() error  // fails Take, if it is there, after what it does
	hung chan struct{} // closed when the store answers again; nil while it answers
}

// answer waits while the store hangs.
func (l *ledger) answer(ctx context.Context) error {
	l.mu.Lock()
	hung := l.hung
	l.mu.Unlock()
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

func (l *ledger) hang() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hung = make(chan struct{})
}

func (l *ledger) goOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.hung)
	l.hung = nil
}

func (l *ledger) Register(ctx context.Context, a vedette.Account) (store.AccountRow, error) {
	if err := l.answer(ctx); err != nil {
		return store.AccountRow{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	row := l.rows[a.Name]
	if row == nil {
		row = &store.AccountRow{Account: a}
		l.rows[a.Name] = row
	}
	if !row.Cluster.Same(a.Cluster) {
		return store.AccountRow{}, vedette.Errorf(vedette.Conflict, "it belongs to %s", row.Cluster)
	}
	return *row, nil
}

func (l *ledger) Acquire(ctx context.Context, account vedette.AccountName, h store.Holder) (vedette.Term, error) {
	if err := l.answer(ctx); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	row := l.rows[account]
	if l.fail != nil {
		if err := l.fail(); err != nil {
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

func (l *ledger) Release(ctx context.Context, account vedette.AccountName, term vedette.Term) error {
	if err := l.answer(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if row := l.rows[account]; row.Term == term {
		row.Holder = ""
	}
	return nil
}

func (l *ledger) RecordLastSeen(ctx context.Context, sightings []store.LastSeen) error {
	l.mu.Lock()
	l.seen = append(l.seen, len(sightings))
	l.mu.Unlock()
	return l.answer(ctx)
}

func (l *ledger) Marks(ctx context.Context, _ vedette.AccountName) ([]store.FeedStatus, error) {
	return nil, l.answer(ctx)
}

func (l *ledger) ReleaseAll(ctx context.Context) error { return l.answer(ctx) }

func (l *ledger) row(name vedette.AccountName) store.AccountRow {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *l.rows[name]
}

// told are the roles that an agent was told, in order.
type told struct {
	mu    sync.Mutex
	roles []Role
}

func (t *told) assign(a Assignment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.roles = append(t.roles, a.Role)
}

func (t *told) last() Role {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.roles) == 0 {
		return ""
	}
	return t.roles[len(t.roles)-1]
}

// journal is a log that tests read.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

// says reports whether a line holds all the parts.
func (j *journal) says(parts ...string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.text.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return true
		}
	}
	return false
}

// world is a roster that runs within a bubble.
type world struct {
	*Roster
	*ledger
	*journal
	t *testing.T
}

func inBubble(t *testing.T, test func(t *testing.T, w world)) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{rows: map[vedette.AccountName]*store.AccountRow{}}
		book := &journal{}
		w := world{New("s1", l, l, slog.New(slog.NewTextHandler(book, nil))), l, book, t}
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

func (w world) connect(id vedette.AgentID) (*Member, *told) {
	heard := &told{}
	return w.Join(Agent{ID: id}, heard.assign), heard
}

func (w world) register(m *Member, permissions *vedette.Permissions) {
	w.t.Helper()
	if err := m.Register(w.t.Context(), prod(permissions)); err != nil {
		w.t.Error(err)
	}
}

func prod(permissions *vedette.Permissions) vedette.Account {
	return vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}, Properties: vedette.Properties{Permissions: permissions}}
}

var dev = &vedette.Permissions{Read: []string{"dev"}}

// TestReadersNeedNoStore lets the store hang in each of the moments in which an
// account changes hands, and asks who serves it meanwhile.
func TestReadersNeedNoStore(t *testing.T) {
	for why, hang := range map[string]func(ctx context.Context, w world, first, second *Member){
		"a registration":           func(ctx context.Context, _ world, _, second *Member) { _ = second.Register(ctx, prod(dev)) },
		"a registration anew":      func(ctx context.Context, _ world, first, _ *Member) { _ = first.Register(ctx, prod(dev)) },
		"an agent that leaves":     func(ctx context.Context, _ world, first, _ *Member) { first.Leave(ctx) },
		"an agent that gives back": func(ctx context.Context, _ world, first, _ *Member) { first.Deregister(ctx, "prod") },
		"an agent that is refused": func(ctx context.Context, _ world, first, _ *Member) { first.Void(ctx, "prod", 1, errors.New("x")) },
	} {
		t.Run(why, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w world) {
				first, _ := w.connect("a1")
				second, heard := w.connect("a2")
				w.register(first, dev)
				w.hang()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				go hang(ctx, w, first, second)
				synctest.Wait()
				began, answered := time.Now(), make(chan struct{})
				go func() {
					defer close(answered)
					w.Fresh("prod")
					w.Holder("prod")
					first.Roles()
					w.Members()
				}()
				select {
				case <-answered:
				case <-time.After(10 * time.Second):
				}
				if waited := time.Since(began); waited > 0 {
					t.Errorf("readers waited for the store, for %v or more", waited)
				}
				w.goOn()
				w.register(second, dev)
				time.Sleep(5 * time.Second)
				if m, _ := w.Holder("prod"); m == nil || heard.last() == "" {
					t.Error("nobody serves the account in the end")
				}
			})
		})
	}
}

// TestLeavingWhileTheStoreHangs asks that an agent that is gone is never taken for
// the cacher, and that the next gets the account when the store is back.
func TestLeavingWhileTheStoreHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		first, _ := w.connect("a1")
		second, heard := w.connect("a2")
		w.hang()
		go func() { _ = first.Register(context.WithoutCancel(t.Context()), prod(dev)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		first.Leave(ctx)
		w.goOn()
		synctest.Wait()
		if m, _ := w.Holder("prod"); m != nil {
			t.Errorf("%s is the cacher, and gone", m.ID)
		}
		w.register(second, dev)
		if heard.last() != Cacher {
			t.Errorf("the next was told %q", heard.last())
		}
	})
}

// TestAnAnswerOfTheStoreIsLost has the store not say whether an agent was made the cacher,
// and the agent leave: the store must not take it for the cacher for ever.
func TestAnAnswerOfTheStoreIsLost(t *testing.T) {
	for _, tt := range []struct {
		why       string
		had, done bool
	}{{"a cacher, in vain", true, false}, {"a cacher, done", true, true}, {"a newcomer, done", false, true}} {
		t.Run(tt.why, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w world) {
				m, _ := w.connect("a1")
				if tt.had {
					w.register(m, dev)
				}
				w.fail = func() error {
					if tt.done {
						w.rows["prod"].Term++
						w.rows["prod"].Holder = "a1"
					}
					return context.Canceled
				}
				if err := m.Register(t.Context(), prod(dev)); err == nil {
					t.Error("it is registered")
				}
				m.Leave(t.Context())
				time.Sleep(3 * time.Second) // the bubble's
				if row := w.row("prod"); row.Holder != "" {
					t.Errorf("%q is stored as the cacher, and gone", row.Holder)
				}
			})
		})
	}
}

// TestSeatWaitsForNoOther locks one account in the database, and has the agent of
// another one go: the next must get that account soon.
func TestSeatWaitsForNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		first, _ := w.connect("a1")
		w.register(first, dev)
		stuck := w.seat("prod")
		if err := stuck.takeTurn(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer stuck.endTurn()
		other, heard := w.connect("a2")
		s := w.seat("other")
		other.registered["other"] = vedette.Account{Name: "other", Cluster: vedette.Cluster{UID: "o"}}
		s.enqueue(other) // as it stands when the store would not give the account
		time.Sleep(3 * time.Second)
		if heard.last() != Cacher {
			t.Errorf("the agent of the other account was told %q", heard.last())
		}
	})
}

// TestWiderPermissionsWait has an agent without permissions take over.
func TestWiderPermissionsWait(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		first, _ := w.connect("a1")
		second, heard := w.connect("a2")
		w.register(first, dev)
		w.register(second, nil)
		if p := w.row("prod").Properties.Permissions; p.AllowsMoreThan(dev) {
			t.Errorf("a standby made them %s", p)
		}
		if notice := second.Roles()["prod"].Message; !strings.Contains(notice, "READ [dev] counts, not open to everyone") {
			t.Errorf("operators are shown %q", notice)
		}
		if !w.says("level=WARN", "stands by", "agent=a2", "open to everyone") {
			t.Errorf("the log says nothing of the standby:\n%s", w.text.String())
		}
		first.Leave(t.Context())
		if heard.last() != Cacher {
			t.Fatal("the second did not take over")
		}
		if !w.says("level=WARN", "security: an agent wants to widen", "agent=a2", "author=a1") || w.says("have become wider") {
			t.Errorf("the log says of what waits:\n%s", w.text.String())
		}
		w.register(second, nil) // once more does not help
		time.Sleep(mostPatience*time.Second - 10*time.Second)
		if p := w.row("prod").Properties.Permissions; p.AllowsMoreThan(dev) {
			t.Errorf("before the patience was over they were %s", p)
		}
		if notice := second.Roles()["prod"].Notice; !strings.Contains(notice, "wait") {
			t.Errorf("operators are shown %q", notice)
		}
		time.Sleep(20 * time.Second)
		if p := w.row("prod").Properties.Permissions; p != nil {
			t.Errorf("they are still %s though the first agent is gone for good", p)
		}
		if !w.says("level=WARN", "security: the permissions of an account have become wider", "agent=a2", `before="READ [dev]"`, `after="open to everyone"`) {
			t.Errorf("the log says of what became wider:\n%s", w.text.String())
		}
	})
}

// TestNoticesAreLoggedOnce has an agent register what is not to its taste again and
// again.
func TestNoticesAreLoggedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		first, _ := w.connect("a1")
		standby, _ := w.connect("a2")
		stranger, heard := w.connect("x")
		w.register(first, dev)
		other := prod(nil)
		other.Cluster.UID = "another"
		for range 50 {
			w.register(standby, nil)
			if err := stranger.Register(t.Context(), other); err != nil || heard.last() != Refused {
				t.Fatalf("the stranger was told %q, %v", heard.last(), err)
			}
		}
		if n := strings.Count(w.text.String(), "level=WARN"); n != 2 {
			t.Errorf("%d warnings, want one of each agent:\n%s", n, w.text.String())
		}
	})
}

// TestNamesAreForgotten registers names that nobody asks for again, while others
// come and go at the same time.
func TestNamesAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		var agents sync.WaitGroup
		for n := range 4 {
			agents.Go(func() {
				for i := range 100 {
					m, heard := w.connect(vedette.AgentID(fmt.Sprint("a", n)))
					account := prod(dev)
					account.Name = vedette.AccountName(fmt.Sprint("name-", (n+i)%5))
					if err := m.Register(t.Context(), account); err != nil || heard.last() == "" {
						t.Errorf("%v after %q", err, heard.last())
					}
					time.Sleep(time.Duration(i%3) * time.Second)
					m.Leave(t.Context())
					time.Sleep(time.Duration(i%4) * time.Second)
				}
			})
		}
		agents.Wait()
		time.Sleep(3 * time.Second)
		if n := len(w.allSeats()); n != 0 {
			t.Errorf("%d seats are left of which nobody asks", n)
		}
	})
}

// TestNamespacesOutliveTheirAgent asks that they are stored and not held in memory.
func TestNamespacesOutliveTheirAgent(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		first, _ := w.connect("a1")
		second, heard := w.connect("a2")
		account := prod(dev)
		account.Namespaces = []string{"default", "shop"}
		for _, m := range []*Member{first, second} {
			if err := m.Register(t.Context(), account); err != nil {
				t.Fatal(err)
			}
			if kept := m.registration("prod").Namespaces; kept != nil {
				t.Errorf("%s's are kept: %q", m.ID, kept)
			}
		}
		first.Leave(t.Context())
		if heard.last() != Cacher || len(w.row("prod").Namespaces) != 2 {
			t.Errorf("got %q and the namespaces %q", heard.last(), w.row("prod").Namespaces)
		}
	})
}

// TestAllAgentsMustAgree widens the permissions in the configuration of two agents,
// one after the other.
func TestAllAgentsMustAgree(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		wide := &vedette.Permissions{Read: []string{"dev", "ops"}}
		first, _ := w.connect("a1")
		second, _ := w.connect("a2")
		w.register(first, dev)
		w.register(second, dev)
		w.register(first, wide)
		time.Sleep(20 * time.Minute)
		if p := w.row("prod").Properties.Permissions; p.AllowsMoreThan(dev) {
			t.Errorf("they are %s though the second agent asks for less", p)
		}
		w.register(second, wide)
		time.Sleep(3 * time.Second)
		if p := w.row("prod").Properties.Permissions; wide.AllowsMoreThan(p) {
			t.Errorf("they are %s though both agents agree", p)
		}
	})
}

// TestNoSeatForWhatIsOnlySpokenOf holds that accounts which an agent makes up take no
// memory beyond its connection.
func TestNoSeatForWhatIsOnlySpokenOf(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		m, _ := w.connect("a")
		w.register(m, nil)
		for i := range 1000 {
			m.Trouble(vedette.AccountName(fmt.Sprint("made-up-", i)), "it can't be reached")
			m.Deregister(t.Context(), vedette.AccountName(fmt.Sprint("made-up-", i)))
			m.Trouble(vedette.AccountName(fmt.Sprint("made-up-", i)), "it can't be reached")
		}
		m.Leave(t.Context())
		if got := len(w.allSeats()); got != 1 {
			t.Errorf("%d seats are kept, want that of the one account that was registered", got)
		}
	})
}
