package assignment

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// TestOneCacherOverServers runs all orders of events of two servers, two agents and one account: agents connect to either server, or to
// both because one has not noticed the end of a connection; servers end, and are taken for ended while they are frozen; answers of the
// store are late or lost, and so is what servers learn of each other. After each event, two agents must not both report in the stored
// term. From each state it also lets everything arrive, and checks that the account comes to rest with one cacher.
func TestOneCacherOverServers(t *testing.T) {
	depth := 6
	if testing.Short() {
		depth = 4
	}
	e := &serversExplorer{t: t, seen: map[string]bool{}}
	isHeld := []string{"0 join a", "0 register a", "0 answer 0 ok", "0 answer 0 ok"}
	hasStandby := append(slices.Clip(isHeld), "1 join b", "1 register b", "1 answer 0 ok")
	isBack := append(slices.Clip(isHeld), "1 join a", "1 register a", "1 answer 0 ok", "1 answer 0 ok")
	frontier := [][]string{nil, isHeld, hasStandby, isBack}
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
	if len(e.seen) < 1000 {
		t.Errorf("got %d states only", len(e.seen))
	}
}

type serversExplorer struct {
	t      *testing.T
	seen   map[string]bool
	events int
}

func (e *serversExplorer) visit(path []string) bool {
	s := e.run(path)
	e.events++
	state := s.fingerprint()
	if e.seen[state] && len(s.problems) == 0 {
		return false
	}
	e.seen[state] = true
	s.settle()
	if len(s.problems) > 0 {
		e.t.Fatalf("after %v: %s", strings.Join(path, ", "), strings.Join(s.problems, "; "))
	}
	return true
}

// sharing is two servers on one database.
type sharing struct {
	servers  []*simulation
	path     []string
	sent     []map[MemberID]Assignment // of each server: what its agents were told last
	problems []string
}

func (e *serversExplorer) run(path []string) *sharing {
	s := &sharing{path: path}
	rows, ended := map[vedette.AccountName]*row{"prod": {Account: newAccount("prod", "", "")}}, map[vedette.ServerID]bool{}
	for i := range 2 {
		one := newSimulation(Config{})
		one.server, one.rows, one.ended = vedette.ServerID(fmt.Sprint("s", i)), rows, ended
		s.servers = append(s.servers, one)
		s.sent = append(s.sent, map[MemberID]Assignment{})
	}
	for _, m := range path {
		s.do(m)
	}
	return s
}

// moves returns what may happen.
func (s *sharing) moves() (all []string) {
	for i, server := range s.servers {
		add := func(format string, args ...any) { all = append(all, fmt.Sprint(i, " ")+fmt.Sprintf(format, args...)) }
		for _, agent := range []string{"a", "b"} {
			id, connected := server.agents[agent]
			switch {
			case !connected && s.count(fmt.Sprint(i, " join ", agent)) < 2:
				add("join %s", agent)
			case connected:
				add("leave %s", agent)
				if _, registered := server.fleet.members[id].registered["prod"]; !registered {
					add("register %s", agent)
				}
				if cacher, _ := server.fleet.Cacher("prod"); cacher == id && s.isOutdated(server) {
					add("revoke %s", agent)
				}
			}
		}
		for n, open := range server.open {
			answers := []answer{answerOK, answerFail, answerLost}
			if _, isAdmit := open.(Admit); isAdmit {
				answers = answers[:2]
			}
			for _, a := range answers {
				add("answer %d %s", n, a)
			}
		}
		if server.fleet.Elsewhere("prod") != nil {
			add("poll")
		}
		if s.count(fmt.Sprint(i, " evict")) == 0 {
			add("evict")
			add("end")
		}
		add("tick")
	}
	return all
}

func (s *sharing) count(move string) (n int) {
	for _, other := range s.path {
		if other == move {
			n++
		}
	}
	return n
}

func (s *sharing) do(m string) {
	var i int
	var what, who string
	if _, err := fmt.Sscan(m, &i, &what); err != nil {
		panic(err)
	}
	server := s.servers[i]
	who = m[strings.LastIndexByte(m, ' ')+1:]
	id := server.agents[who]
	switch what {
	case "join":
		server.join(who, "")
	case "register":
		server.step(Registered{Member: id, Account: newAccount("prod", "", ""), Request: server.newRequest()})
	case "leave":
		delete(server.agents, who)
		delete(s.sent[i], id)
		server.step(Left{Member: id, Request: server.newRequest()})
	case "revoke":
		s.rejectWrites(server)
	case "answer":
		var n int
		if _, err := fmt.Sscanf(m, "%d answer %d %s", &i, &n, &who); err != nil {
			panic(err)
		}
		s.answer(server, n, answer(who))
	case "poll":
		s.poll(server)
	case "evict": // the others take it for ended; it may only be frozen
		server.ended[server.server] = true
	case "end":
		s.end(i)
	case "tick":
		server.wait(accountInterval)
	}
	s.check()
}

func (s *sharing) answer(server *simulation, n int, kind answer) {
	e := server.open[n]
	server.open = slices.Delete(server.open, n, n+1)
	if server.ended[server.server] {
		kind = answerFail // its lease is lost
	}
	server.step(server.answerTo(e, kind))
}

// poll tells a server what has become of an account that another one had.
func (s *sharing) poll(server *simulation) {
	elsewhere := server.fleet.Elsewhere("prod")
	r := server.rows["prod"]
	if elsewhere != nil && (r.holder == "" || server.ended[r.server]) {
		server.step(ElsewhereEnded{Account: "prod", Term: r.term})
	}
}

// end ends a server, and starts its next process, to which no agent is connected.
func (s *sharing) end(i int) {
	old := s.servers[i]
	next := newSimulation(Config{})
	next.server, next.rows, next.ended = old.server, old.rows, old.ended
	s.servers[i], s.sent[i] = next, map[MemberID]Assignment{}
	delete(next.ended, next.server)
	if r := next.rows["prod"]; r != nil && r.server == next.server {
		r.holder, r.server = "", ""
		r.term++
	}
}

// isOutdated reports whether the store rejects what the server's cacher writes.
func (s *sharing) isOutdated(server *simulation) bool {
	_, term := server.fleet.Cacher("prod")
	return server.rows["prod"].term != term || server.ended[server.server]
}

func (s *sharing) rejectWrites(server *simulation) {
	if cacher, term := server.fleet.Cacher("prod"); cacher != 0 && s.isOutdated(server) {
		server.step(Revoked{Member: cacher, Account: "prod", Term: term, Reason: errStore})
	}
}

// registerAgain registers the account for agents that were refused, as they do.
func (s *sharing) registerAgain(server *simulation) {
	for _, id := range slices.Sorted(maps.Keys(server.fleet.members)) {
		if server.fleet.members[id].roles["prod"].Role == Refused {
			server.step(Registered{Member: id, Account: newAccount("prod", "", ""), Request: server.newRequest()})
		}
	}
}

func (s *sharing) problem(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// check checks that nobody but the stored holder reports in the stored term.
func (s *sharing) check() {
	for i, server := range s.servers {
		for _, e := range server.happened {
			if sent, ok := e.(Send); ok && server.agents[server.names[sent.Member]] == sent.Member {
				s.sent[i][sent.Member] = sent.Assignment
			}
		}
		server.happened = nil
		for id, a := range s.sent[i] {
			r := server.rows["prod"]
			if a.Role == Cacher && a.Term == r.term && r.holder != "" && (r.server != server.server || string(r.holder) != server.names[id]) {
				s.problem("%s at %s reports in term %d, which the store gave to %s at %s", server.names[id], server.server, a.Term, r.holder, r.server)
			}
		}
	}
}

// settle lets everything arrive, and checks that one agent reports the account if any wants it. A server that was taken for ended finds
// that, and ends.
func (s *sharing) settle() {
	for i, server := range s.servers {
		if server.ended[server.server] {
			s.end(i)
		}
	}
	var lastTerm vedette.Term
	for round := range 8 {
		if lastTerm != s.servers[0].rows["prod"].term && round > 6 {
			s.problem("servers take the account from each other for ever")
		}
		lastTerm = s.servers[0].rows["prod"].term
		for _, server := range s.servers {
			for range 20 {
				if len(server.open) == 0 {
					break
				}
				s.answer(server, 0, answerOK)
				s.check()
			}
			s.rejectWrites(server)
			s.registerAgain(server)
			s.poll(server)
			server.wait(accountInterval)
			s.check()
		}
	}
	var wanting, cachers []string
	for _, server := range s.servers {
		if len(server.open) > 0 {
			s.problem("%s does not come to rest: %v is open", server.server, server.open)
		}
		for id, m := range server.fleet.members {
			if a := server.fleet.accounts["prod"]; a != nil && a.has(m) {
				wanting = append(wanting, fmt.Sprint(server.names[id], " at ", server.server))
			}
		}
		if cacher, term := server.fleet.Cacher("prod"); cacher != 0 {
			cachers = append(cachers, fmt.Sprint(server.names[cacher], " at ", server.server))
			if r := server.rows["prod"]; r.server != server.server || r.term != term || string(r.holder) != server.names[cacher] {
				s.problem("%s has it in term %d, but stored is %+v", cachers[len(cachers)-1], term, *r)
			}
		}
		for id, a := range s.sent[slices.Index(s.servers, server)] {
			if cacher, _ := server.fleet.Cacher("prod"); a.Role == Cacher && id != cacher {
				s.problem("%s at %s still believes that it is the cacher", server.names[id], server.server)
			}
		}
	}
	r := s.servers[0].rows["prod"]
	switch {
	case len(cachers) > 1:
		s.problem("several agents report it: %v", cachers)
	case len(wanting) > 0 && len(cachers) == 0:
		s.problem("%v want it, and nobody has it; stored is %+v", wanting, r)
	case len(wanting) == 0 && r != nil && r.holder != "":
		s.problem("nobody wants it, and stored is %+v", *r)
	}
}

// fingerprint describes all that decides what follows. Terms and attempts are left out: they only rise.
func (s *sharing) fingerprint() string {
	var b strings.Builder
	r := s.servers[0].rows["prod"]
	if r != nil {
		fmt.Fprint(&b, "stored ", r.holder, r.server)
	}
	for i, server := range s.servers {
		fmt.Fprint(&b, " ", server.server, server.ended[server.server], s.count(fmt.Sprint(i, " evict")), s.count(fmt.Sprint(i, " join a")),
			s.count(fmt.Sprint(i, " join b")))
		if a := server.fleet.accounts["prod"]; a != nil {
			fmt.Fprint(&b, a.currentPhase(), ids(a.candidates), a.cacher, a.unreleased, a.uncertain, a.handover, a.gap, len(a.awaiting), a.job.kind,
				formatJob(a.job), a.job.isFirst, a.job.stored.Elsewhere != nil, " waiting")
			for _, j := range a.waiting {
				fmt.Fprint(&b, j.kind, formatJob(j), j.isFirst)
			}
			if a.elsewhere != nil {
				fmt.Fprint(&b, " elsewhere ", a.elsewhere.Server, a.elsewhere.Agent, r.term-a.elsewhere.Term)
			}
			fmt.Fprint(&b, " behind ", r.term-a.term)
		}
		for _, id := range slices.Sorted(maps.Keys(server.fleet.members)) {
			m := server.fleet.members[id]
			_, registered := m.registered["prod"]
			fmt.Fprint(&b, " member ", id, server.names[id], registered, m.roles["prod"].Role, s.sent[i][id].Role)
		}
		for _, e := range server.open {
			fmt.Fprintf(&b, " %T", e)
			if acquire, ok := e.(Acquire); ok {
				fmt.Fprint(&b, r.term-acquire.After)
			}
		}
	}
	return b.String()
}
