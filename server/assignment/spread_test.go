package assignment

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

// spreading is an installation whose agents have an account each, and do what they are asked.
type spreading struct {
	*installation

	next  func(from int) int // the server to which an agent goes; -1 for none, and from if it comes back
	stays bool               // agents that are asked do not leave
	asked []string           // agents that were asked, in this order
	todo  []askedOf
}

// askedOf is an agent of a server.
type askedOf struct {
	agent string
	from  int
}

func newSpreading(t *testing.T, cfg BalanceConfig, agents ...int) *spreading {
	t.Helper()
	sp := &spreading{installation: newInstallation(t, 1, len(agents), cfg)}
	sp.next = func(from int) int { return (from + 1 + sp.random.IntN(len(agents)-1)) % len(agents) }
	for i, s := range sp.servers {
		s.onAsked = func(e AskToLeave) {
			sp.asked = append(sp.asked, s.names[e.Member])
			sp.todo = append(sp.todo, askedOf{s.names[e.Member], i})
		}
		for n := range agents[i] {
			agent := fmt.Sprintf("agent-%d-%02d", i, n)
			sp.register(i, agent, vedette.AccountName(agent))
		}
	}
	return sp
}

// run lets time pass, in which agents do what they were asked.
func (sp *spreading) run(d time.Duration) {
	for end := sp.now + d; sp.now < end; {
		sp.pass(time.Second)
		todo := sp.todo
		sp.todo = nil
		for _, m := range todo {
			if sp.stays {
				continue
			}
			to := sp.next(m.from)
			s := sp.servers[m.from]
			if to == m.from { // the new connection comes before the former one ends
				former := s.agents[m.agent]
				sp.register(to, m.agent, vedette.AccountName(m.agent))
				s.step(Left{Member: former, Request: s.newRequest()})
				continue
			}
			s.step(Left{Member: s.agents[m.agent], Request: s.newRequest()})
			delete(s.agents, m.agent)
			sp.answerAll()
			if to >= 0 {
				sp.register(to, m.agent, vedette.AccountName(m.agent))
			}
		}
	}
}

func (sp *spreading) agentsAtServers() (counts []int) {
	for _, s := range sp.servers {
		counts = append(counts, len(s.fleet.members))
	}
	return counts
}

// TestAgentsAreSpreadOverServers has a server that joined when all agents were connected to others.
func TestAgentsAreSpreadOverServers(t *testing.T) {
	sp := newSpreading(t, BalanceConfig{}, 30, 30, 0)
	sp.run(4*time.Minute + 50*time.Second)
	if len(sp.asked) > 0 {
		t.Errorf("%d agents were asked to leave before the servers were the same for five minutes", len(sp.asked))
	}
	sp.run(30 * time.Minute)
	counts := sp.agentsAtServers()
	if least, most := slices.Min(counts), slices.Max(counts); least+most < 30 || (most-least)*100 > (most+least)*stopPercent && most-least >= minSpread {
		t.Errorf("servers have %v agents, want about as many", counts)
	}
	asked := len(sp.asked)
	t.Logf("%d agents have moved", asked)
	if asked < 16 || asked > 60 {
		t.Errorf("%d agents were asked to leave", asked)
	}
	sp.run(time.Hour)
	if len(sp.asked) != asked {
		t.Errorf("%d agents were asked to leave although nothing happened", len(sp.asked)-asked)
	}
	for agent, n := range sp.counts() {
		if n != 1 {
			t.Errorf("%s has %d accounts, want its own", agent, n)
		}
	}
}

// TestFewAgentsStay has as many agents at each server as can be.
func TestFewAgentsStay(t *testing.T) {
	for _, agents := range [][]int{{1, 0}, {1, 1, 0}, {2, 1, 1}, {11, 9}, {0, 0}} {
		sp := newSpreading(t, BalanceConfig{}, agents...)
		if sp.run(time.Hour); len(sp.asked) > 0 {
			t.Errorf("%v agents at servers: asked %v to leave", agents, sp.asked)
		}
	}
}

// TestNobodyIsAskedToLeave has servers of which one has all agents.
func TestNobodyIsAskedToLeave(t *testing.T) {
	for name, test := range map[string]func(sp *spreading){
		"a server is restarted every four minutes": func(sp *spreading) {
			for range 20 {
				sp.run(4 * time.Minute)
				sp.servers[0].step(PeerLost{Server: "s2"})
			}
		},
		"another server drains": func(sp *spreading) {
			sp.servers[2].step(Draining{})
			sp.run(time.Hour)
		},
		"this server drains": func(sp *spreading) {
			sp.servers[0].step(Draining{})
			sp.run(time.Hour)
		},
		"the agents were away": func(sp *spreading) {
			for range 30 {
				sp.run(100 * time.Second)
				for agent, member := range sp.servers[0].agents {
					sp.register(0, agent, vedette.AccountName(agent))
					sp.servers[0].step(Left{Member: member, Request: sp.servers[0].newRequest()})
				}
			}
		},
	} {
		sp := newSpreading(t, BalanceConfig{}, 10, 0, 0)
		if test(sp); len(sp.asked) > 0 {
			t.Errorf("%s: asked %v to leave", name, sp.asked)
		}
	}
	sp := newSpreading(t, BalanceConfig{IsWithinServer: true}, 10, 0)
	if sp.run(time.Hour); len(sp.asked) > 0 {
		t.Errorf("agents stay at their server: asked %v to leave", sp.asked)
	}
}

// TestAgentsThatDoNotArrive has agents that are not where another server says that there are few.
func TestAgentsThatDoNotArrive(t *testing.T) {
	const duration = time.Hour
	for name, tt := range map[string]struct {
		change func(sp *spreading)
		most   int // agents that may be asked
	}{
		"they cannot leave":                  {func(sp *spreading) { sp.stays = true }, 6},
		"they are nowhere":                   {func(sp *spreading) { sp.next = func(int) int { return -1 } }, 6},
		"a load balancer returns all agents": {func(sp *spreading) { sp.next = func(from int) int { return from } }, maxMisses},
	} {
		sp := newSpreading(t, BalanceConfig{}, 10, 0)
		tt.change(sp)
		sp.run(duration)
		if n := len(sp.asked); n < 2 || n > tt.most {
			t.Errorf("%s: asked %d times in an hour, want at most %d", name, n, tt.most)
		}
		byAgent := map[string]int{}
		for _, agent := range sp.asked {
			byAgent[agent]++
		}
		for agent, n := range byAgent {
			if n > 6 {
				t.Errorf("%s: %s was asked %d times in an hour", name, agent, n)
			}
		}
	}
}

// TestPauseIsNoFailure pauses a server after it has asked an agent to leave. It does not say that the agent is nowhere.
func TestPauseIsNoFailure(t *testing.T) {
	sp := newSpreading(t, BalanceConfig{}, 10, 0)
	sp.stays = true
	for len(sp.asked) == 0 {
		sp.run(time.Second)
	}
	s := sp.servers[0]
	s.now = s.now.Add(time.Minute)
	s.wait(ListenInterval)
	for _, e := range s.happened {
		if line, ok := e.(Log); ok && line.Level == Warn {
			t.Errorf("logged %q", line.Message)
		}
	}
}

// TestServerThatAgentsDoNotReach has a server to which no agent can connect. The others do not move theirs to and fro for it.
func TestServerThatAgentsDoNotReach(t *testing.T) {
	sp := newSpreading(t, BalanceConfig{}, 20, 20, 0)
	sp.next = func(from int) int { return 1 - from }
	sp.run(time.Hour)
	if n, most := len(sp.asked), 2*maxMisses*2; n < maxMisses || n > most {
		t.Errorf("%d agents were asked to leave in an hour, want at most %d", n, most)
	}
	sp.next = func(int) int { return 2 }
	sp.run(90 * time.Minute)
	if counts := sp.agentsAtServers(); counts[2] < 11 {
		t.Errorf("servers have %v agents after all of them reach the last one, want about as many", counts)
	}
}

// TestAgentsWithAccountsOfTheirOwnLeaveFirst has two agents that share accounts, and one that does not and has more objects.
func TestAgentsWithAccountsOfTheirOwnLeaveFirst(t *testing.T) {
	sp := newSpreading(t, BalanceConfig{}, 0, 0)
	sp.servers[0].sizes["own-1"] = 5000
	for _, agent := range []string{"a", "b"} {
		sp.register(0, agent, "shared")
	}
	sp.register(0, "c", "own-1", "own-2")
	sp.stays = true
	sp.run(6 * time.Minute)
	if len(sp.asked) != 1 || sp.asked[0] != "c" {
		t.Errorf("asked %v to leave, want the one whose accounts no other has", sp.asked)
	}
}
