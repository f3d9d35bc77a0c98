package assigner

import (
	"context"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
)

// speaker is an agent that shows every 500 ms that it is alive, unless it is frozen.
type speaker struct {
	*Member
	roles  *roleRecorder
	frozen atomic.Bool
}

// speak connects an agent that has all accounts and announces its interval.
func (w *balanceFixture) speak(id vedette.AgentID) *speaker {
	w.t.Helper()
	m, roles := w.connectAll(id)
	return w.talk(m, roles)
}

func (w *balanceFixture) talk(m *Member, roles *roleRecorder) *speaker {
	s := &speaker{Member: m, roles: roles}
	s.SetAliveInterval(assignment.MinAliveInterval)
	s.BeginReceive()
	go func() {
		tick := time.NewTicker(assignment.MinAliveInterval)
		defer tick.Stop()
		for {
			select {
			case <-w.t.Context().Done():
				return
			case <-tick.C:
				if !s.frozen.Load() {
					s.say()
				}
			}
		}
	}()
	return s
}

// say sends a message.
func (s *speaker) say() {
	s.EndReceive()
	s.BeginReceive()
}

func (s *speaker) freezeFor(d time.Duration) {
	s.frozen.Store(true)
	time.Sleep(d)
	s.wake()
}

// wake continues a frozen agent. Its message is due at once.
func (s *speaker) wake() {
	s.frozen.Store(false)
	s.say()
}

func withSpeakers(t *testing.T, accounts int, test func(t *testing.T, w *balanceFixture)) {
	withFixture(t, func(t *testing.T, f fixture) {
		w := &balanceFixture{fixture: f}
		w.objects, w.notLive = map[vedette.AccountName]int64{}, map[vedette.AccountName]bool{}
		for range accounts {
			w.addAccounts(10)
		}
		test(t, w)
	})
}

// accountsOf returns how many accounts an agent reports.
func (w *balanceFixture) accountsOf(id vedette.AgentID) (n int) {
	holders, _ := w.holders()
	for _, holder := range holders {
		if holder == id {
			n++
		}
	}
	return n
}

func (w *balanceFixture) expectAccounts(step string, id vedette.AgentID, want int) {
	w.t.Helper()
	synctest.Wait()
	if got := w.accountsOf(id); got != want {
		w.t.Errorf("%s: agent %s reports %d accounts, want %d", step, id, got, want)
	}
}

// TestStandbyTakesOverFromFrozenAgent freezes an agent with 500 accounts, which keeps its connection.
// Its standby has all of them within three seconds. When the agent continues, it is a standby, and
// nothing moves back.
func TestStandbyTakesOverFromFrozenAgent(t *testing.T) {
	const accounts = 500
	withSpeakers(t, accounts, func(t *testing.T, w *balanceFixture) {
		first := w.speak("a1")
		w.speak("a2")
		time.Sleep(time.Minute)
		first.frozen.Store(true)
		time.Sleep(2 * time.Second)
		w.expectAccounts("frozen for 2 s", "a1", accounts)
		time.Sleep(time.Second)
		w.expectAccounts("frozen for 3 s", "a2", accounts)
		if first.roles.last() != assignment.Standby || w.countLines("level=WARN", "an agent is silent", "agent=a1", "accounts=500") != 1 {
			t.Errorf("the frozen agent was told to be %q, want standby and one warning", first.roles.last())
		}
		time.Sleep(3 * time.Second)
		first.wake()
		time.Sleep(10 * time.Minute)
		w.expectAccounts("ten minutes later", "a2", accounts)
	})
}

// TestSilentAgentGetsNothing freezes one of two agents that share accounts for ten minutes. The other one
// takes over, and the Balancer gives the silent one nothing back, although it has the smaller load,
// until it has been heard for some time.
func TestSilentAgentGetsNothing(t *testing.T) {
	withBalancer(t, func(t *testing.T, w *balanceFixture) {
		for range 10 {
			w.addAccounts(1000)
		}
		first := w.speak("a1")
		w.speak("a2")
		time.Sleep(10 * time.Minute)
		w.expectAccounts("shared", "a1", 5)
		first.frozen.Store(true)
		time.Sleep(3 * time.Second)
		for range 600 {
			w.expectAccounts("frozen", "a1", 0)
			time.Sleep(time.Second)
		}
		first.wake()
		time.Sleep(balanceConfig.Settle - time.Second)
		w.expectAccounts("just awake", "a1", 0)
		time.Sleep(10 * time.Minute)
		w.expectAccounts("shared again", "a1", 5)
	})
}

// TestPausesMoveNothing lets agents and their network pause in ways that are no reason to move
// accounts.
func TestPausesMoveNothing(t *testing.T) {
	for name, pause := range map[string]func(first, second *speaker){
		"the cacher, for 2 s": func(first, _ *speaker) { first.freezeFor(2 * time.Second) },
		"the standby":         func(_, second *speaker) { second.freezeFor(time.Minute) },
		"both": func(first, second *speaker) {
			second.frozen.Store(true)
			first.freezeFor(time.Minute)
			second.wake()
		},
		"both, and the standby is heard first": func(first, second *speaker) {
			first.frozen.Store(true)
			second.freezeFor(time.Minute)
			time.Sleep(1900 * time.Millisecond)
			first.wake()
		},
		"the server does not read the cacher's messages": func(first, _ *speaker) {
			first.frozen.Store(true)
			synctest.Wait() // until a message that is due now has arrived
			first.EndReceive()
			time.Sleep(time.Minute)
			first.wake()
		},
	} {
		t.Run(name, func(t *testing.T) {
			withSpeakers(t, 20, func(t *testing.T, w *balanceFixture) {
				first := w.speak("a1")
				second := w.speak("a2")
				time.Sleep(time.Minute)
				for range 20 {
					pause(first, second)
					w.expectAccounts("after the pause", "a1", 20)
					time.Sleep(7300 * time.Millisecond)
				}
			})
		})
	}
}

// TestAccountsDoNotGoToAndFro freezes two agents in turns. Within five minutes, an account goes from
// one to the other once.
func TestAccountsDoNotGoToAndFro(t *testing.T) {
	withSpeakers(t, 20, func(t *testing.T, w *balanceFixture) {
		first := w.speak("a1")
		second := w.speak("a2")
		time.Sleep(time.Minute)
		first.freezeFor(4 * time.Second)
		w.expectAccounts("the first was frozen", "a2", 20)
		time.Sleep(time.Minute)
		second.freezeFor(8 * time.Second)
		w.expectAccounts("the second was frozen soon after", "a2", 20)
		time.Sleep(takeoverPause)
		second.freezeFor(4 * time.Second)
		w.expectAccounts("the second was frozen long after", "a1", 20)
	})
}

// TestStandbysThatDoNotTakeOver checks which standbys get no account of an agent that is only silent.
func TestStandbysThatDoNotTakeOver(t *testing.T) {
	for name, prepare := range map[string]func(w *balanceFixture) *Member{
		"an agent that does not show that it is alive": func(w *balanceFixture) *Member {
			m, _ := w.connectAll("a2")
			return m
		},
		"one in another zone": func(w *balanceFixture) *Member {
			recorder := &roleRecorder{}
			m := w.Join(assignment.Agent{ID: "a2", ZoneID: "elsewhere"}, recorder.assign)
			if err := m.Register(w.t.Context(), testAccount(0)); err != nil {
				w.t.Fatal(err)
			}
			return w.talk(m, recorder).Member
		},
		"one with other permissions": func(w *balanceFixture) *Member {
			m := w.speak("a2").Member
			w.registerAgain(m, vedette.Properties{Permissions: devPermissions})
			return m
		},
		"one that cannot reach the cluster": func(w *balanceFixture) *Member {
			m := w.speak("a2").Member
			m.SetAccountError("account-0000", AccountError{Message: "no route"})
			return m
		},
	} {
		t.Run(name, func(t *testing.T) {
			withSpeakers(t, 1, func(t *testing.T, w *balanceFixture) {
				first := w.speak("a1")
				prepare(w)
				time.Sleep(time.Minute)
				first.frozen.Store(true)
				time.Sleep(8 * time.Second)
				w.expectAccounts("silent for 8 s", "a1", 1)
				first.Leave(t.Context()) // as when its connection ends
				w.expectAccounts("disconnected", "a2", 1)
			})
		})
	}
}

// TestSharingAgentsAreAskedForSignsOfLife checks that only agents are asked that have an account in common.
func TestSharingAgentsAreAskedForSignsOfLife(t *testing.T) {
	withSpeakers(t, 1, func(t *testing.T, w *balanceFixture) {
		first, _ := w.connectAll("a1")
		other, _ := w.connect("b1")
		time.Sleep(2 * sharedInterval)
		if first.IsShared() || other.IsShared() {
			t.Error("an agent is asked although no other has its accounts")
		}
		second, _ := w.connectAll("a2")
		time.Sleep(2 * sharedInterval)
		if !first.IsShared() || !second.IsShared() || other.IsShared() {
			t.Errorf("got %v, %v and %v, want the two with the same account", first.IsShared(), second.IsShared(), other.IsShared())
		}
		second.Leave(t.Context())
		time.Sleep(2 * sharedInterval)
		if first.IsShared() {
			t.Error("the agent is still asked")
		}
	})
}

// TestFormerCacherLearnsOfFailedMove lets the store lose its answer to a move. The former cacher
// must not go on reporting in its old term.
func TestFormerCacherLearnsOfFailedMove(t *testing.T) {
	withSpeakers(t, 1, func(t *testing.T, w *balanceFixture) {
		first := w.speak("a1")
		second := w.speak("a2")
		time.Sleep(time.Minute)
		w.set(func() { w.failTake = func() error { return context.DeadlineExceeded } })
		first.frozen.Store(true)
		time.Sleep(5 * time.Second)
		if first.roles.last() != assignment.Standby {
			t.Errorf("the former cacher was told to be %q, want standby", first.roles.last())
		}
		w.set(func() { w.failTake = nil })
		time.Sleep(2 * time.Second)
		w.expectAccounts("the store answers again", "a2", 1)
		if second.roles.last() != assignment.Cacher {
			t.Errorf("the new cacher was told to be %q", second.roles.last())
		}
		if n := w.CacherChanges()[assignment.ReasonSilent]; n.Done != 1 || n.Failed < 1 {
			t.Errorf("got %+v counted, want one change after some failures", n)
		}
	})
}

// TestWrongClockDecidesNothing lets one of two agents have a clock that is wrong by hours, so that its data
// seems to be old, or from the future. Nothing moves, times in the future count as now, and takeovers take
// as long as ever.
func TestWrongClockDecidesNothing(t *testing.T) {
	for _, wrong := range []time.Duration{5 * time.Hour, -5 * time.Hour} {
		withBalancer(t, func(t *testing.T, w *balanceFixture) {
			w.addAccounts(1000, 1000)
			first := w.speak("a1")
			second := w.speak("a2")
			time.Sleep(balanceConfig.Tenure + 10*time.Second)
			w.expectAccounts("shared", "a1", 1)
			before := w.CacherChanges()
			for range 600 {
				first.SetFreshness(time.Now().Add(wrong))
				second.SetFreshness(time.Now())
				time.Sleep(time.Second)
			}
			if after := w.CacherChanges(); !maps.Equal(before, after) {
				t.Errorf("a clock wrong by %v: got changes %v, want %v", wrong, after, before)
			}
			if at := first.AccountFreshness("any"); at.After(time.Now()) || at.IsZero() {
				t.Errorf("a clock wrong by %v: got the freshness %v at %v", wrong, at, time.Now())
			}
			for _, s := range []*speaker{first, second} {
				s.freezeFor(3 * time.Second)
				w.expectAccounts("frozen", s.ID, 0)
				time.Sleep(20 * time.Minute) // until accounts are shared again
			}
		})
	}
}
