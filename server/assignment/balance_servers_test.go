package assignment

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

// installation is several servers whose messages take some time, and whose store answers at once.
type installation struct {
	t       *testing.T
	random  *rand.Rand
	servers []*simulation
	waiting []delayed
	now     time.Duration
	delay   time.Duration // of a message, at most
	moves   int           // accounts that an agent got from another one
	liar    int           // a server that takes no account that it is offered; -1 for none
}

type delayed struct {
	from int
	at   time.Duration
	e    Effect
}

func newInstallation(t *testing.T, seed uint64, servers int, cfg BalanceConfig) *installation {
	t.Helper()
	in := &installation{t: t, random: rand.New(rand.NewPCG(seed, 7)), delay: 50 * time.Millisecond, liar: -1}
	rows := map[vedette.AccountName]*row{}
	sizes := map[vedette.AccountName]int64{}
	for i := range servers {
		id := vedette.ServerID(fmt.Sprint("s", i))
		one := newSimulation(Config{Balance: &cfg, Server: id, IsShared: true})
		one.server, one.rows, one.sizes, one.ended = id, rows, sizes, map[vedette.ServerID]bool{}
		one.onMessage = func(e Effect) {
			in.waiting = append(in.waiting, delayed{i, in.now + time.Duration(in.random.Int64N(int64(in.delay))), e})
		}
		in.servers = append(in.servers, one)
	}
	return in
}

// register lets an agent join at a server and register accounts.
func (in *installation) register(server int, agent string, accounts ...vedette.AccountName) {
	s := in.servers[server]
	s.join(agent, "")
	s.step(AliveAnnounced{Member: s.agents[agent], Interval: MinAliveInterval})
	for _, name := range accounts {
		s.step(Registered{Member: s.agents[agent], Account: newAccount(name, "", ""), Request: s.newRequest()})
	}
	in.answerAll()
}

func (in *installation) answerAll() {
	for _, s := range in.servers {
		for len(s.open) > 0 {
			if acquire, ok := s.open[0].(Acquire); ok && s.rows[acquire.Account.Name].holder != "" {
				in.moves++
			}
			if err := s.answer("", answerOK); err != nil {
				in.t.Fatal(err)
			}
		}
	}
}

// pass lets time pass, in which each server tells the others once a second that it is there.
func (in *installation) pass(d time.Duration) {
	for end := in.now + d; in.now < end; in.now += ListenInterval {
		due := in.waiting
		in.waiting = nil
		for _, m := range due {
			if m.at > in.now {
				in.waiting = append(in.waiting, m)
				continue
			}
			in.deliver(m)
		}
		if in.now%UpdateInterval == 0 {
			for i := range in.servers {
				in.deliver(delayed{i, in.now, SendUpdate{}})
			}
		}
		in.answerAll()
		for _, s := range in.servers {
			s.wait(ListenInterval)
		}
		in.answerAll()
	}
}

func (in *installation) deliver(m delayed) {
	server := in.servers[m.from].server
	for i, to := range in.servers {
		if i == m.from {
			continue
		}
		switch e := m.e.(type) {
		case SendUpdate:
			to.step(PeerUpdated{Server: server, Agents: e.Agents, Left: e.Left, Accounts: e.Accounts, IsDraining: in.servers[m.from].fleet.isDraining})
		case SendOffer:
			if e.Server == to.server && i != in.liar {
				to.step(Offered{Server: server, Offer: e.Offer})
			}
		case Decline:
			if e.Server == to.server {
				to.step(Declined{Server: server, Account: e.Account, Number: e.Number})
			}
		}
	}
}

// counts returns how many accounts each agent has.
func (in *installation) counts() map[string]int {
	counts := map[string]int{}
	for _, s := range in.servers {
		for agent := range s.agents {
			counts[agent] += 0
		}
		s.fleet.Accounts(func(a AccountStatus) {
			if a.Cacher != 0 {
				counts[s.names[a.Cacher]]++
			}
		})
	}
	return counts
}

func accountNames(n int) (names []vedette.AccountName) {
	for i := range n {
		names = append(names, vedette.AccountName(fmt.Sprintf("account-%02d", i)))
	}
	return names
}

// TestAccountsAreSharedOverServers lets agents join at one server after the other. Each gets about as many accounts as the others, and when
// they are shared, nothing moves any more.
func TestAccountsAreSharedOverServers(t *testing.T) {
	for seed := range uint64(3) {
		in := newInstallation(t, seed, 3, BalanceConfig{})
		accounts := accountNames(24)
		in.register(0, "a", accounts...)
		in.pass(5 * time.Minute)
		in.register(1, "b", accounts...)
		in.pass(10 * time.Minute)
		if counts := in.counts(); counts["a"] < 10 || counts["b"] < 10 {
			t.Errorf("seed %d: two agents have %v, want about as many", seed, counts)
		}
		in.register(2, "c", accounts...)
		in.register(0, "d", accounts...)
		in.pass(20 * time.Minute)
		counts := in.counts()
		for agent, n := range counts {
			if n < 5 || n > 7 {
				t.Errorf("seed %d: agent %s has %d of 24 accounts: %v", seed, agent, n, counts)
			}
		}
		before := in.moves
		in.pass(time.Hour)
		if in.moves != before {
			t.Errorf("seed %d: %d accounts have moved although nothing happens", seed, in.moves-before)
		}
		if before > 60 {
			t.Errorf("seed %d: it took %d moves", seed, before)
		}
	}
}

// TestAccountsOfAnySizeEndToMove has accounts of very different sizes, and agents that come and go at random. After that, moves end.
func TestAccountsOfAnySizeEndToMove(t *testing.T) {
	for seed := range uint64(12) {
		in := newInstallation(t, seed, 3, BalanceConfig{})
		accounts := accountNames(12)
		for _, name := range accounts {
			in.servers[0].sizes[name] = in.random.Int64N(1 << in.random.IntN(16))
		}
		in.delay = []time.Duration{10 * time.Millisecond, time.Second, 4 * time.Second}[seed%3]
		agents := map[string]int{}
		for n := range 10 {
			if name := fmt.Sprint("agent-", in.random.IntN(4)); n > 3 && len(agents) > 1 && in.random.IntN(3) == 0 {
				if server, is := agents[name]; is {
					s := in.servers[server]
					s.step(Left{Member: s.agents[name], Request: s.newRequest()})
					delete(s.agents, name)
					delete(agents, name)
				}
			} else if _, is := agents[name]; !is {
				agents[name] = in.random.IntN(3)
				in.register(agents[name], name, accounts...)
			}
			in.pass(time.Duration(in.random.IntN(300)) * time.Second)
		}
		in.pass(time.Hour)
		before := in.moves
		in.pass(time.Hour)
		if in.moves != before {
			t.Errorf("seed %d: %d accounts have moved although nothing happens: %v", seed, in.moves-before, in.counts())
		}
		total := 0
		for _, n := range in.counts() {
			total += n
		}
		if len(agents) > 0 && total != len(accounts) {
			t.Errorf("seed %d: agents have %d accounts, want all of %d: %v", seed, total, len(accounts), in.counts())
		}
	}
}

// TestServerThatTakesNothing has an idle agent at a server that ignores what it is offered. Agents of the others share the accounts all the same.
func TestServerThatTakesNothing(t *testing.T) {
	in := newInstallation(t, 1, 3, BalanceConfig{})
	in.liar = 1
	accounts := accountNames(12)
	in.register(0, "a", accounts...)
	in.register(1, "idle", accounts...)
	in.register(2, "c", accounts...)
	in.pass(30 * time.Minute)
	if counts := in.counts(); counts["a"] != 6 || counts["c"] != 6 {
		t.Errorf("got %v, want that two share them", counts)
	}
}

// TestAccountsStayAtTheirServer has the balance end at servers.
func TestAccountsStayAtTheirServer(t *testing.T) {
	in := newInstallation(t, 1, 2, BalanceConfig{IsWithinServer: true})
	accounts := accountNames(12)
	in.register(0, "a", accounts...)
	in.register(1, "b", accounts...)
	in.register(0, "c", accounts...)
	in.pass(20 * time.Minute)
	if counts := in.counts(); counts["a"] != 6 || counts["c"] != 6 || counts["b"] != 0 {
		t.Errorf("got %v, want that the two at the first server share them", counts)
	}
	s := in.servers[0]
	for _, agent := range slices.Sorted(maps.Keys(s.agents)) {
		s.step(Left{Member: s.agents[agent], Request: s.newRequest()})
		delete(s.agents, agent)
	}
	in.pass(time.Second)
	if counts := in.counts(); counts["b"] != 12 {
		t.Errorf("got %v, want all at the other server, because nobody else has them", counts)
	}
}

// TestFreeAccountsGoToTheLeastLoadedServer ends the agent of a server. Its accounts go to the agent that has nothing to do yet, and not to the busy one.
func TestFreeAccountsGoToTheLeastLoadedServer(t *testing.T) {
	in := newInstallation(t, 1, 3, BalanceConfig{IsWithinServer: true})
	accounts := accountNames(4)
	in.register(0, "a", accounts...)
	in.register(1, "busy", append(accountNames(30)[10:], accounts...)...)
	in.register(2, "idle", accounts...)
	in.pass(10 * time.Second)
	s := in.servers[0]
	s.step(Left{Member: s.agents["a"], Request: s.newRequest()})
	delete(s.agents, "a")
	in.pass(200 * time.Millisecond)
	if counts := in.counts(); counts["idle"] != 4 {
		t.Errorf("got %v, want that the idle agent has the accounts", counts)
	}
}

// TestSilentAgentsOfSeveralServers lets two agents of different servers fall silent in turns. The account moves once, and stays for five minutes.
func TestSilentAgentsOfSeveralServers(t *testing.T) {
	in := newInstallation(t, 1, 2, BalanceConfig{})
	in.register(0, "a", "prod")
	in.register(1, "b", "prod")
	in.pass(10 * time.Second)
	freeze := func(server int, agent string, d time.Duration) {
		s := in.servers[server]
		s.frozen[s.agents[agent]] = true
		in.pass(d)
		delete(s.frozen, s.agents[agent])
	}
	freeze(0, "a", 3200*time.Millisecond)
	if counts := in.counts(); counts["b"] != 1 || counts["a"] != 0 {
		t.Fatalf("got %v, want that the agent that is heard has the account", counts)
	}
	for range 10 {
		freeze(1, "b", 4*time.Second)
		freeze(0, "a", 4*time.Second)
	}
	if counts := in.counts(); counts["b"] != 1 || in.moves != 1 {
		t.Errorf("got %v after %d moves, want one", counts, in.moves)
	}
	in.pass(6 * time.Minute)
	freeze(1, "b", 3200*time.Millisecond)
	if counts := in.counts(); counts["a"] != 1 {
		t.Errorf("got %v, want that the account moves again after five minutes", counts)
	}
}
