package assignment

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

// TestOneCacherWithPeers runs all orders of events of two servers that tell each other about their agents, of two agents and of one account:
// what they tell is late, lost, doubled and out of order, and connections between them break; agents fall silent; a server says what is not so:
// that it has the account, that it has released it, that it has a standby, and it offers what it does not have; a server drains. After each
// event, two agents must not both report in the stored term. From each state it also lets everything arrive, and checks that
// the account comes to rest with one agent that is heard, and stays there.
func TestOneCacherWithPeers(t *testing.T) {
	depth := 3
	if testing.Short() {
		depth = 2
	}
	held := []string{"0 join a", "0 register a", "0 answer 0 ok", "0 answer 0 ok"}
	standsBy := append(slices.Clip(held), "1 join b", "1 register b", "1 answer 0 ok", "all pass 6s")
	silent := append(slices.Clip(standsBy), "0 freeze a", "all pass 3200ms")
	offered := append(slices.Clip(silent), "0 deliver 0")
	taking := append(slices.Clip(offered), "1 answer 0 ok")
	taken := append(slices.Clip(taking), "1 answer 0 ok")
	twoHere := append(slices.Clip(standsBy), "0 join b", "0 register b", "0 answer 0 ok")
	released := append(slices.Clip(standsBy), "0 leave a", "0 answer 0 ok")
	drains := append(slices.Clip(standsBy), "0 drain")
	for _, tt := range []struct {
		name string
		path []string
	}{{"nothing", nil}, {"held", held}, {"standby", standsBy}, {"silent", silent}, {"offered", offered}, {"taking", taking}, {"taken", taken},
		{"two here", twoHere}, {"released", released}, {"draining", drains}} {
		t.Run(tt.name, func(t *testing.T) {
			e := &peersExplorer{t: t, seen: map[string]bool{}}
			frontier := [][]string{tt.path}
			for range depth {
				var next [][]string
				for _, path := range frontier {
					for _, m := range e.run(path).moves() {
						if longer := append(slices.Clip(path), m); e.visit(longer) {
							next = append(next, longer)
						}
					}
				}
				frontier = next
			}
			t.Logf("%d states, %d events", len(e.seen), e.events)
			if len(e.seen) < 50 {
				t.Errorf("got %d states only", len(e.seen))
			}
		})
	}
}

type peersExplorer struct {
	t      *testing.T
	seen   map[string]bool
	events int
}

func (e *peersExplorer) visit(path []string) bool {
	w := e.run(path)
	e.events++
	state := w.fingerprint()
	if e.seen[state] && len(w.problems) == 0 {
		return false
	}
	e.seen[state] = true
	w.settle()
	if len(w.problems) > 0 {
		e.t.Fatalf("after %q: %s", path, strings.Join(w.problems, "; "))
	}
	return true
}

// peers is two servers on one database that tell each other about their agents.
type peers struct {
	*sharing

	queues  [2][]Effect // from each server to the other one: what has not arrived
	isCut   [2]bool     // nothing arrives
	drained [2]bool
	lied    bool
	ghosts  [2]bool // the server always says that it has a standby that does not exist
}

func (e *peersExplorer) run(path []string) *peers {
	w := newPeers(Config{})
	w.path = path
	for _, m := range path {
		w.do(m)
	}
	return w
}

func newPeers(cfg Config) *peers {
	w := &peers{sharing: &sharing{}}
	rows, ended := map[vedette.AccountName]*row{"prod": {Account: newAccount("prod", "", "")}}, map[vedette.ServerID]bool{}
	for i := range 2 {
		w.servers = append(w.servers, nil)
		w.sent = append(w.sent, nil)
		w.start(i, cfg, rows, ended)
	}
	w.link(0)
	w.link(1)
	return w
}

// start starts a process of a server.
func (w *peers) start(i int, cfg Config, rows map[vedette.AccountName]*row, ended map[vedette.ServerID]bool) {
	id := vedette.ServerID(fmt.Sprint("s", i))
	cfg.IsShared, cfg.Server = true, id
	one := newSimulation(cfg)
	one.server, one.rows, one.ended = id, rows, ended
	one.onMessage = func(e Effect) { w.queues[i] = append(w.queues[i], e) }
	w.servers[i], w.sent[i] = one, map[MemberID]Assignment{}
}

// moves returns what may happen.
func (w *peers) moves() (all []string) {
	for i, server := range w.servers {
		add := func(format string, args ...any) { all = append(all, fmt.Sprint(i, " ")+fmt.Sprintf(format, args...)) }
		for _, agent := range []string{"a", "b"} {
			id, connected := server.agents[agent]
			switch {
			case !connected && w.count(fmt.Sprint(i, " join ", agent)) < 2:
				add("join %s", agent)
			case connected:
				add("leave %s", agent)
				if _, registered := server.fleet.members[id].registered["prod"]; !registered {
					add("register %s", agent)
				}
				if cacher, _ := server.fleet.Cacher("prod"); cacher == id && w.isOutdated(server) {
					add("revoke %s", agent)
				}
				if cacher, _ := server.fleet.Cacher("prod"); cacher == id && !server.frozen[id] {
					add("freeze %s", agent)
				}
			}
		}
		for n := range server.open {
			for _, a := range []answer{answerOK, answerFail, answerLost} {
				add("answer %d %s", n, a)
			}
		}
		for n := range min(len(w.queues[i]), 2) {
			add("deliver %d", n)
		}
		if len(w.queues[i]) > 0 {
			add("double")
			add("drop")
		}
		if w.count(fmt.Sprint(i, " cut")) == 0 {
			add("cut")
		}
		if !w.lied {
			for _, lie := range []string{"held", "free", "standby", "offer", "declined"} {
				add("lie %s", lie)
			}
		}
		if w.count(fmt.Sprint(i, " evict")) == 0 {
			add("evict")
		}
		if !w.drained[i] {
			add("drain")
		}
	}
	return append(all, "all pass 400ms", "all pass 3200ms")
}

func (w *peers) do(m string) {
	var who, what string
	if _, err := fmt.Sscan(m, &who, &what); err != nil {
		panic(err)
	}
	if who == "all" {
		d, err := time.ParseDuration(m[strings.LastIndexByte(m, ' ')+1:])
		if err != nil {
			panic(err)
		}
		w.pass(d)
		return
	}
	i := int(who[0] - '0')
	server, last := w.servers[i], m[strings.LastIndexByte(m, ' ')+1:]
	switch what {
	case "register":
		w.sharing.do(m)
		server.step(AliveAnnounced{Member: server.agents[last], Interval: MinAliveInterval})
	case "freeze":
		server.frozen[server.agents[last]] = true
	case "deliver":
		n := int(last[0] - '0')
		e := w.queues[i][n]
		w.queues[i] = slices.Delete(w.queues[i], n, n+1)
		w.deliver(i, e)
	case "double":
		w.deliver(i, w.queues[i][0])
	case "drop":
		w.queues[i] = w.queues[i][1:]
	case "cut":
		w.cut(i)
	case "lie":
		w.lied = true
		w.lie(i, last)
	case "drain":
		w.drained[i] = true
		server.step(Draining{})
	default:
		w.sharing.do(m)
		return
	}
	w.check()
}

// cut ends the connection over which a server tells the other one.
func (w *peers) cut(i int) {
	w.queues[i], w.isCut[i] = nil, true
	w.servers[1-i].step(PeerLost{w.servers[i].server})
}

// link begins the connection anew.
func (w *peers) link(i int) {
	w.isCut[i] = false
	agents, accounts := w.servers[i].fleet.Updates()
	w.queues[i] = append(w.queues[i], SendUpdate{Agents: agents, Accounts: accounts})
}

// pass lets time pass at both servers. Those that are connected tell each other in it that they are there, and all that was not told
// before.
func (w *peers) pass(d time.Duration) {
	for range d / (400 * time.Millisecond) {
		for i := range w.servers {
			if w.isCut[i] {
				w.link(i)
			}
			w.deliverAll(i)
		}
		for _, server := range w.servers {
			server.wait(400 * time.Millisecond)
		}
		w.check()
	}
}

// deliverAll delivers what has not arrived, but offers and answers to them: these follow when they are chosen, or when all settles.
func (w *peers) deliverAll(i int) {
	var kept []Effect
	for _, e := range w.queues[i] {
		if _, isSendUpdate := e.(SendUpdate); isSendUpdate {
			w.deliver(i, e)
		} else {
			kept = append(kept, e)
		}
	}
	w.queues[i] = kept
	w.deliver(i, SendUpdate{})
}

func (w *peers) deliver(i int, e Effect) {
	to, server := w.servers[1-i], w.servers[i].server
	if w.isCut[i] || to.ended[server] || to.ended[to.server] {
		return
	}
	switch e := e.(type) {
	case SendUpdate:
		if w.ghosts[i] {
			e = withGhost(e, w.servers[0].rows["prod"])
		}
		to.step(PeerUpdated{Server: server, Agents: e.Agents, Left: e.Left, Accounts: e.Accounts, IsDraining: w.drained[i]})
	case SendOffer:
		to.step(Offered{Server: server, Offer: e.Offer})
	case Decline:
		to.step(Declined{Server: server, Account: e.Account, Number: e.Number})
	}
}

// lie makes a server say what is not so.
func (w *peers) lie(i int, what string) {
	r := w.servers[0].rows["prod"]
	to := w.servers[1-i]
	switch what {
	case "held":
		w.deliver(i, SendUpdate{Accounts: []AccountUpdate{{Account: "prod", Term: r.term + 5, IsHeld: true}}})
	case "free":
		w.deliver(i, SendUpdate{Accounts: []AccountUpdate{{Account: "prod", Term: r.term}}})
	case "standby":
		w.ghosts[i] = true
		w.deliver(i, SendUpdate{})
	case "offer":
		for _, id := range to.agents {
			for _, reason := range []ChangeReason{ReasonSilent, ReasonDrained, ReasonReturned} {
				w.deliver(i, SendOffer{Server: to.server, Offer: Offer{Account: "prod", Term: r.term, Number: 77, Member: id, Reason: reason}})
			}
		}
	case "declined":
		for number := range Attempt(9) {
			w.deliver(i, Decline{Server: to.server, Account: "prod", Number: number})
		}
	}
}

// withGhost adds a standby that does not exist.
func withGhost(e SendUpdate, r *row) SendUpdate {
	e.Agents = append(slices.Clip(e.Agents), AgentUpdate{Member: 99, ID: "ghost", Heard: time.Hour, Settled: time.Hour})
	ghost := StandbyUpdate{Member: 99, Likeness: likenessOf("", Prepare(r.Properties))}
	if len(e.Accounts) == 0 {
		e.Accounts = []AccountUpdate{{Account: "prod"}}
	}
	e.Accounts = slices.Clone(e.Accounts)
	for i := range e.Accounts {
		e.Accounts[i].Standbys = append(slices.Clip(e.Accounts[i].Standbys), ghost)
	}
	return e
}

// settle lets everything arrive. Agents that are frozen lose their connections at last.
func (w *peers) settle() {
	for i, server := range w.servers {
		if server.ended[server.server] || w.drained[i] {
			w.endServer(i)
		}
	}
	w.settleFor(7)
	w.checkSilent()
	for i, server := range w.servers {
		for _, id := range slices.Sorted(maps.Values(server.agents)) {
			if server.frozen[id] {
				w.do(fmt.Sprint(i, " leave ", server.names[id]))
			}
		}
	}
	w.settleFor(5)
	w.checkHeld()
	w.sharing.settle()
	for range 3 { // what the last answers have caused arrives, too
		w.settleFor(1)
	}
	term := w.servers[0].rows["prod"].term
	w.settleFor(3)
	w.checkRest(term)
}

// checkSilent checks that no silent agent has the account while another one is heard.
func (w *peers) checkSilent() {
	var isHeard, isSilent bool
	for _, server := range w.servers {
		a := server.fleet.accounts["prod"]
		if a == nil {
			continue
		}
		for _, m := range a.candidates {
			isHeard = isHeard || !server.frozen[m.id]
		}
		isSilent = isSilent || server.frozen[a.cacher] && a.takenOverAt.IsZero()
	}
	if isHeard && isSilent && !w.lied {
		w.problem("a silent agent has the account, and another one is heard")
	}
}

// checkHeld checks that an agent has the account if any wants it, while servers hear each other and whatever they say.
func (w *peers) checkHeld() {
	isWanted, isHeld := false, false
	for _, server := range w.servers {
		if a := server.fleet.accounts["prod"]; a != nil {
			isWanted, isHeld = isWanted || len(a.candidates) > 0, isHeld || a.cacher != 0
		}
	}
	if isWanted && !isHeld {
		w.problem("an agent wants the account, and nobody has it; stored is %+v", *w.servers[0].rows["prod"])
	}
}

// checkRest checks that nothing happens any more.
func (w *peers) checkRest(term vedette.Term) {
	if now := w.servers[0].rows["prod"].term; now != term {
		w.problem("the term rises from %d to %d although nothing happens", term, now)
	}
	for _, server := range w.servers {
		f := server.fleet
		a := f.accounts["prod"]
		if len(f.offered)+len(f.deferred)+f.silent.open > 0 || f.balancer.isMoving || a != nil && (a.offer != nil || a.isLooking) {
			w.problem("%s still waits: %d offers, %d deferrals, %d takeovers", server.server, len(f.offered), len(f.deferred), f.silent.open)
		}
	}
}

// endServer ends a process and starts the next one, to which no agent is connected.
func (w *peers) endServer(i int) {
	old := w.servers[i]
	w.cut(i)
	w.start(i, Config{}, old.rows, old.ended)
	delete(old.ended, old.server)
	w.drained[i], w.queues[1-i] = false, nil
	if r := old.rows["prod"]; r.server == old.server {
		r.holder, r.server = "", ""
		r.term++
	}
	w.servers[1-i].step(PeerLost{old.server})
	w.link(1 - i)
	if e := w.servers[1-i].fleet.Elsewhere("prod"); e != nil && e.Server == old.server {
		w.servers[1-i].step(ElsewhereEnded{Account: "prod", Term: e.Term})
	}
}

func (w *peers) settleFor(rounds int) {
	for range rounds {
		for range 12 {
			if w.isQuiet() {
				break
			}
			for i, server := range w.servers {
				for range len(server.open) {
					w.answer(server, 0, answerOK)
				}
				for _, e := range w.queues[i] {
					if _, isSendUpdate := e.(SendUpdate); !isSendUpdate {
						w.deliver(i, e)
					}
				}
				w.queues[i] = slices.DeleteFunc(w.queues[i], func(e Effect) bool { _, isSendUpdate := e.(SendUpdate); return !isSendUpdate })
				w.deliverAll(i)
				w.check()
			}
		}
		for _, server := range w.servers {
			w.rejectWrites(server)
			w.registerAgain(server)
			w.poll(server)
		}
		w.pass(1200 * time.Millisecond)
	}
}

// isQuiet reports whether nothing is under way.
func (w *peers) isQuiet() bool {
	waiting := 0
	for i, server := range w.servers {
		waiting += len(server.open) + len(w.queues[i])
	}
	return waiting == 0
}

// fingerprint describes all that decides what follows, with times as far as they do.
func (w *peers) fingerprint() string {
	var b strings.Builder
	b.WriteString(w.sharing.fingerprint())
	r := w.servers[0].rows["prod"]
	fmt.Fprint(&b, w.isCut, w.drained, w.lied, w.ghosts, w.count("0 cut"), w.count("1 cut"))
	for i, server := range w.servers {
		f := server.fleet
		fmt.Fprint(&b, " frozen ", len(server.frozen))
		for _, id := range slices.Sorted(maps.Keys(f.peers)) {
			p := f.peers[id]
			fmt.Fprint(&b, " peer ", p.isDraining, f.now.Sub(p.heardAt) >= PeerTimeout)
			for _, member := range slices.Sorted(maps.Keys(p.agents)) {
				fmt.Fprint(&b, member, p.agents[member].IsSilent, p.agents[member].Heard > 0)
			}
			fmt.Fprint(&b, p.accounts["prod"].Standbys)
		}
		if a := f.accounts["prod"]; a != nil {
			fmt.Fprint(&b, " account ", a.isLooking, a.releasedTerm != 0, a.deferredUntil.IsZero(), a.offer != nil, a.sent.IsHeld, r.term-a.sent.Term,
				len(a.refusals), f.now.Sub(a.assignedAt) < takeoverTenure, a.takenOverAt.IsZero())
			if a.offer != nil {
				fmt.Fprint(&b, a.offer.Reason, a.offer.Member, r.term-a.offer.Term, a.offer.until.Sub(f.now)/time.Second)
			}
		}
		for _, e := range w.queues[i] {
			fmt.Fprintf(&b, " %T", e)
			if t, ok := e.(SendUpdate); ok {
				for _, a := range t.Accounts {
					fmt.Fprint(&b, a.IsHeld, r.term-a.Term, a.Standbys)
				}
				fmt.Fprint(&b, len(t.Agents), t.Left)
			}
		}
		for id, m := range f.members {
			fmt.Fprint(&b, id, m.liveness.isSilent(), m.liveness.interval)
		}
	}
	return b.String()
}
