package assigner

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
)

// balanceFixture is a fixture with a running Balancer.
type balanceFixture struct {
	fixture
	mu   sync.Mutex
	busy map[vedette.AccountName]bool
}

// What a fleet waits for.
var balanceConfig = assignment.BalanceConfig{Settle: 30 * time.Second, Tenure: 2 * time.Minute, Pause: 3 * time.Second}

const (
	countInterval    = 30 * time.Second
	moveTimeout      = time.Minute
	stayAfterFail    = time.Hour
	takeoverPause    = 5 * time.Minute
	sharedInterval   = time.Second
	maxIncreaseTicks = 600
)

func withBalancer(t *testing.T, test func(t *testing.T, w *balanceFixture)) {
	withConfig(t, assignment.Config{Balance: &balanceConfig}, func(t *testing.T, f fixture) {
		w := &balanceFixture{fixture: f, busy: map[vedette.AccountName]bool{}}
		w.objects, w.notLive = map[vedette.AccountName]int64{}, map[vedette.AccountName]bool{}
		f.SetBusy(w.isBusy)
		test(t, w)
	})
}

func (w *balanceFixture) isBusy(name vedette.AccountName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.busy[name]
}

// join connects an agent that registers all accounts of the store.
func (w *balanceFixture) join(id vedette.AgentID) *Member {
	w.t.Helper()
	m, _ := w.connect(id)
	for i := range len(w.objects) {
		if err := m.Register(w.t.Context(), testAccount(i)); err != nil {
			w.t.Fatal(err)
		}
	}
	return m
}

func testAccount(i int) vedette.Account {
	name := fmt.Sprintf("account-%04d", i)
	return vedette.Account{Name: vedette.AccountName(name), Cluster: vedette.Cluster{UID: name}}
}

func (w *balanceFixture) addAccounts(objects ...int64) {
	for _, n := range objects {
		w.objects[testAccount(len(w.objects)).Name] = n
	}
}

// holders returns the cacher of each account, and the objects of each agent.
func (w *balanceFixture) holders() (holders map[vedette.AccountName]vedette.AgentID, objects map[vedette.AgentID]int64) {
	holders, objects = map[vedette.AccountName]vedette.AgentID{}, map[vedette.AgentID]int64{}
	for name, n := range w.objects {
		if m, _ := w.Cacher(name); m != nil {
			holders[name] = m.ID
			objects[m.ID] += n
		}
	}
	return holders, objects
}

// expectShares checks that all accounts have a cacher, and that no agent has more than its part of
// the objects by more than the tolerance in percent.
func (w *balanceFixture) expectShares(step string, percent int64, agents ...vedette.AgentID) {
	w.t.Helper()
	synctest.Wait()
	holders, objects := w.holders()
	if len(holders) != len(w.objects) {
		w.t.Errorf("%s: %d of %d accounts have a cacher", step, len(holders), len(w.objects))
	}
	total := int64(0)
	for _, n := range w.objects {
		total += n
	}
	for _, id := range agents {
		if want := total / int64(len(agents)); objects[id]*100 < want*(100-percent) || objects[id]*100 > want*(100+percent) {
			w.t.Errorf("%s: agent %s has %d objects, want %d within %d percent; all: %v", step, id, objects[id], want, percent, objects)
		}
	}
}

// TestAgentsShareObjects lets agents with hundreds of accounts of very different sizes come and go.
// It checks that they share the objects, that they then stay still, that a handover is immediate,
// and that one account moves at a time.
func TestAgentsShareObjects(t *testing.T) {
	withBalancer(t, func(t *testing.T, w *balanceFixture) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			w.addAccounts(int64(random.ExpFloat64() * 5000))
		}
		w.addAccounts(40_000)
		first := w.join("a1")
		w.join("a2")
		w.expectShares("the first agent begins with all", 0, "a1")
		w.awaitBalance()
		w.expectShares("two agents", 11, "a1", "a2")
		w.expectStill("two agents")
		w.join("a3")
		w.awaitBalance()
		w.expectShares("a third agent", 20, "a1", "a2", "a3")
		w.expectStill("three agents")
		first.Leave(t.Context())
		w.expectShares("one left, at once", 25, "a2", "a3")
		w.awaitBalance()
		w.expectStill("two agents are left")
	})
}

// quiet is longer than all that delays the next move: without one for as long, there is none.
var quiet = balanceConfig.Tenure + balanceConfig.Settle + countInterval

// awaitBalance waits until no account has moved for a while. It does not wait for a fixed time, because
// each second of the bubble costs work for each account.
func (w *balanceFixture) awaitBalance() {
	w.t.Helper()
	before, _ := w.holders()
	for end := time.Now().Add(3 * time.Hour); time.Now().Before(end); {
		time.Sleep(quiet)
		after, _ := w.holders()
		if maps.Equal(before, after) {
			return
		}
		before = after
	}
	w.t.Error("accounts still move after three hours")
}

// expectStill checks that no account moves for twice as long as any account waits for its move.
func (w *balanceFixture) expectStill(step string) {
	w.t.Helper()
	before, _ := w.holders()
	time.Sleep(2 * quiet)
	after, _ := w.holders()
	for name, id := range before {
		if after[name] != id {
			w.t.Errorf("%s: account %s moved from %s to %s", step, name, id, after[name])
		}
	}
}

// TestWhatKeepsAccounts checks each reason for which an account does not move, and that it moves
// when the reason is gone.
func TestWhatKeepsAccounts(t *testing.T) {
	for name, tt := range map[string]struct {
		keep, release func(w *balanceFixture, second *Member)
	}{
		"a first sync": {
			func(w *balanceFixture, _ *Member) { w.set(func() { w.notLive["account-0000"] = true }) },
			func(w *balanceFixture, _ *Member) { w.set(func() { w.notLive["account-0000"] = false }) },
		},
		"an operation": {
			func(w *balanceFixture, _ *Member) { w.mu.Lock(); defer w.mu.Unlock(); w.busy["account-0000"] = true },
			func(w *balanceFixture, _ *Member) { w.mu.Lock(); defer w.mu.Unlock(); w.busy["account-0000"] = false },
		},
		"an error of the standby": {
			func(_ *balanceFixture, m *Member) {
				m.SetAccountError("account-0000", AccountError{Message: "no route"})
			},
			func(_ *balanceFixture, m *Member) { m.SetAccountError("account-0000", AccountError{}) },
		},
		"a registration with other properties": {
			func(w *balanceFixture, m *Member) {
				w.registerAgain(m, vedette.Properties{Permissions: devPermissions})
			},
			func(w *balanceFixture, m *Member) { w.registerAgain(m, vedette.Properties{}) },
		},
		"the store does not answer": {
			func(w *balanceFixture, _ *Member) { w.hang() },
			func(w *balanceFixture, _ *Member) { w.resume() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			withBalancer(t, func(t *testing.T, w *balanceFixture) {
				w.addAccounts(1000, 1000)
				for i := range 2 {
					w.notLive[testAccount(i).Name] = i == 1 // only the first can move
				}
				w.join("a1")
				second := w.join("a2")
				tt.keep(w, second)
				time.Sleep(2 * quiet)
				if m, _ := w.Cacher("account-0000"); m == nil || m.ID != "a1" {
					t.Errorf("got cacher %v, want a1", m)
				}
				tt.release(w, second)
				time.Sleep(time.Minute)
				if m, _ := w.Cacher("account-0000"); m == nil || m.ID != "a2" {
					t.Errorf("got cacher %v, want a2", m)
				}
			})
		})
	}
}

func (w fixture) set(change func()) {
	w.memoryStore.mu.Lock()
	defer w.memoryStore.mu.Unlock()
	change()
}

func (w *balanceFixture) registerAgain(m *Member, p vedette.Properties) {
	w.t.Helper()
	a := testAccount(0)
	a.Properties = p
	if err := m.Register(w.t.Context(), a); err != nil {
		w.t.Fatal(err)
	}
}

// TestFailedMoveIsUndone moves an account to an agent that cannot read it.
func TestFailedMoveIsUndone(t *testing.T) {
	withBalancer(t, func(t *testing.T, w *balanceFixture) {
		w.addAccounts(1000, 1000)
		w.notLive["account-0001"] = true
		_, firstRoles := w.connectAll("a1")
		_, secondRoles := w.connectAll("a2")
		time.Sleep(balanceConfig.Tenure + 2*time.Second)
		if firstRoles.last() != assignment.Standby || secondRoles.last() != assignment.Cacher {
			t.Fatalf("got roles %v and %v, want the first account moved", firstRoles.roles, secondRoles.roles)
		}
		w.set(func() { w.notLive["account-0000"] = true })
		time.Sleep(moveTimeout + 2*time.Second)
		if firstRoles.last() != assignment.Cacher || secondRoles.last() != assignment.Standby || !w.hasLine("level=WARN", "account-0000", "back=true") {
			t.Errorf("got roles %v and %v, want the account back and a warning", firstRoles.roles, secondRoles.roles)
		}
		w.expectChanges("moved and back", map[assignment.ChangeReason]assignment.CacherChanges{assignment.ReasonJoined: {Done: 2}, assignment.ReasonBalance: {Done: 1}, assignment.ReasonReturned: {Done: 1}})
		w.set(func() { w.notLive["account-0000"] = false })
		time.Sleep(stayAfterFail - 2*time.Minute)
		if m, _ := w.Cacher("account-0000"); m == nil || m.ID != "a1" {
			t.Errorf("got cacher %v, want a1 for an hour", m)
		}
	})
}

// connectAll connects an agent that registers all accounts, and records its roles.
func (w *balanceFixture) connectAll(id vedette.AgentID) (*Member, *roleRecorder) {
	m, roles := w.connect(id)
	for i := range len(w.objects) {
		if err := m.Register(w.t.Context(), testAccount(i)); err != nil {
			w.t.Fatal(err)
		}
	}
	return m, roles
}

// TestFlappingAgentMovesNothing lets an agent come and go for an hour, each time for less than
// the settle time, and checks that it never gets an account from the others.
func TestFlappingAgentMovesNothing(t *testing.T) {
	withBalancer(t, func(t *testing.T, w *balanceFixture) {
		for range 50 {
			w.addAccounts(1000)
		}
		w.join("a1")
		time.Sleep(10 * time.Minute)
		for range 120 {
			m := w.join("a2")
			time.Sleep(balanceConfig.Settle - time.Second)
			w.expectAccounts("just connected", "a2", 0)
			m.Leave(t.Context())
			time.Sleep(time.Second)
		}
	})
}

// TestStandbyTakesOverAtOnce ends an agent with 2,000 accounts. Its standbys share them without a
// wait.
func TestStandbyTakesOverAtOnce(t *testing.T) {
	withFixture(t, func(t *testing.T, f fixture) {
		w := &balanceFixture{fixture: f}
		w.objects = map[vedette.AccountName]int64{}
		for range 2000 {
			w.addAccounts(10)
		}
		first := w.join("a1")
		w.join("a2")
		w.join("a3")
		began := time.Now()
		first.Leave(t.Context())
		if took := time.Since(began); took > 0 {
			t.Errorf("the handover waited for %v", took)
		}
		w.expectShares("handed over", 5, "a2", "a3")
	})
}
