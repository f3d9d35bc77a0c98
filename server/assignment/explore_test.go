package assignment

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/test/statediagram"
)

// TestInvariantsHoldInEveryOrder runs all orders of events of two agents and one account, with every answer that the store can give, and
// checks after each event what must always hold. From each state it also lets the store answer all that is open, and
// checks that the account comes to rest.
func TestInvariantsHoldInEveryOrder(t *testing.T) {
	depth := 8
	if testing.Short() {
		depth = 6
	}
	e := &explorer{t: t, seen: map[string]bool{}}
	e.explore(depth)
	if len(e.seen) < 1000 {
		t.Errorf("got %d states only", len(e.seen))
	}
	if !testing.Short() {
		golden.CompareSection(t, "../../docs/flow.md", "phases of an account", e.diagram.String())
	}
}

// TestInvariantsHoldForConnectionsOfOneProcess is the same with two connections of one process, of which the later one takes the account
// over from the earlier one.
func TestInvariantsHoldForConnectionsOfOneProcess(t *testing.T) {
	e := &explorer{t: t, seen: map[string]bool{}, process: "p"}
	e.explore(6)
	if len(e.seen) < 500 {
		t.Errorf("got %d states only", len(e.seen))
	}
}

func (e *explorer) explore(depth int) {
	frontier := [][]move{nil}
	for range depth {
		var next [][]move
		for _, path := range frontier {
			for _, m := range e.moves(path) {
				longer := append(slices.Clip(path), m)
				if e.visit(longer) {
					next = append(next, longer)
				}
			}
		}
		frontier = next
	}
	e.t.Logf("%d states, %d events", len(e.seen), e.events)
}

// move is an event of the exploration.
type move struct {
	what  string
	agent string
}

func (m move) String() string { return strings.TrimSpace(m.what + " " + m.agent) }

type explorer struct {
	t       *testing.T
	process string // of all agents; empty if each has its own
	seen    map[string]bool
	events  int
	diagram statediagram.Diagram
}

// checked is a simulation whose messages to agents are checked.
type checked struct {
	*simulation
	path     []move
	sent     map[MemberID]Assignment // what connected agents were told last
	lastTerm vedette.Term            // that an agent was told
	acquired map[vedette.Term]vedette.AgentID
	asked    map[Request]bool
	problems []string
}

// moves returns what may happen after a path.
func (e *explorer) moves(path []move) []move {
	c := e.run(path)
	var all []move
	for _, agent := range []string{"a", "b"} {
		id, connected := c.agents[agent]
		if !connected {
			if joins := count(path, move{"join", agent}); joins < 2 {
				all = append(all, move{"join", agent})
			}
			continue
		}
		all = append(all, move{"register", agent}, move{"leave", agent}, move{"deregister", agent})
		if cacher, _ := c.fleet.Cacher("prod"); cacher == id {
			all = append(all, move{"revoke", agent})
		}
	}
	for i, open := range c.open {
		answers := []answer{answerOK, answerFail, answerLost}
		if _, isAdmit := open.(Admit); isAdmit {
			answers = []answer{answerOK, answerFail, answerRefusal}
		}
		for _, a := range answers {
			all = append(all, move{fmt.Sprint("answer ", i, " ", a), ""})
		}
	}
	if c.lastAnswer != nil && len(path) > 0 && path[len(path)-1].what != "late" {
		all = append(all, move{"late", ""})
	}
	return append(all, move{"remove", ""}, move{"tick", ""})
}

func count(path []move, m move) (n int) {
	for _, other := range path {
		if other == m {
			n++
		}
	}
	return n
}

// visit runs a path, and reports whether it leads to a state that is new.
func (e *explorer) visit(path []move) bool {
	c := e.run(path)
	e.events++
	c.checkState()
	state := c.fingerprint()
	if e.seen[state] && len(c.problems) == 0 {
		return false
	}
	e.seen[state] = true
	c.settle()
	if len(c.problems) > 0 {
		e.t.Fatalf("after %v: %s", c.path, strings.Join(c.problems, "; "))
	}
	return true
}

func (e *explorer) run(path []move) *checked {
	c := &checked{simulation: newSimulation(Config{}), path: path, sent: map[MemberID]Assignment{}, acquired: map[vedette.Term]vedette.AgentID{},
		asked: map[Request]bool{}}
	c.process = e.process
	c.onStep = func(event Event, from, to Phase) {
		e.diagram.Add(string(from), string(to), statediagram.EventName(event))
	}
	for _, m := range path {
		c.do(m)
	}
	return c
}

func (c *checked) do(m move) {
	id := c.agents[m.agent]
	switch m.what {
	case "join":
		c.join(m.agent, "")
	case "register":
		c.step(Registered{Member: id, Account: newAccount("prod", "", ""), Request: c.newAsked()})
	case "leave":
		delete(c.agents, m.agent)
		delete(c.sent, id)
		c.step(Left{Member: id, Request: c.newAsked()})
	case "deregister":
		delete(c.sent, id)
		c.step(Deregistered{Member: id, Account: "prod", Request: c.newAsked()})
	case "revoke":
		_, term := c.fleet.Cacher("prod")
		c.step(Revoked{Member: id, Account: "prod", Term: term, Reason: errStore, Request: c.newAsked()})
	case "remove":
		c.step(ChangeWanted{Account: "prod", Change: Removal, Request: c.newAsked()})
	case "late":
		c.step(c.lastAnswer)
	case "tick":
		c.wait(accountInterval)
	default:
		var i int
		var kind answer
		if _, err := fmt.Sscanf(m.what, "answer %d %s", &i, &kind); err != nil {
			panic(err)
		}
		c.answerOne(i, kind)
	}
	c.check()
}

func (c *checked) newAsked() Request {
	id := c.newRequest()
	c.asked[id] = true
	return id
}

func (c *checked) answerOne(i int, kind answer) {
	e := c.open[i]
	c.open = slices.Delete(c.open, i, i+1)
	c.lastAnswer = c.answerTo(e, kind)
	if a, ok := c.lastAnswer.(Acquired); ok && a.Err == nil {
		c.acquired[a.Term] = e.(Acquire).Agent
	}
	c.step(c.lastAnswer)
}

func (c *checked) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// check checks what agents were told.
func (c *checked) check() {
	for _, e := range c.happened {
		sent, ok := e.(Send)
		if !ok {
			continue
		}
		if c.agents[c.names[sent.Member]] != sent.Member {
			c.problem("member %d, which has left, is told %s", sent.Member, sent.Assignment.Role)
			continue
		}
		c.sent[sent.Member] = sent.Assignment
		if sent.Assignment.Role != Cacher {
			continue
		}
		term := sent.Assignment.Term
		if got := c.acquired[term]; got != c.idOf(c.names[sent.Member]) {
			c.problem("member %d is told that it is the cacher in term %d, which the store gave to %q", sent.Member, term, got)
		}
		if r := c.rows["prod"]; r != nil && term > c.lastTerm {
			c.lastTerm = term
		} else if r != nil && r.term >= c.lastTerm {
			c.problem("term %d is told after term %d", term, c.lastTerm)
		}
	}
	c.happened = nil
	if _, exists := c.rows["prod"]; !exists { // removed: its terms begin anew
		c.lastTerm = 0
		clear(c.acquired)
	}
}

// checkState checks what must hold in each state.
func (c *checked) checkState() {
	cacher, term := c.fleet.Cacher("prod")
	for id, a := range c.sent {
		if a.Role == Cacher && id == cacher && a.Term != term {
			c.problem("the cacher was told term %d and has term %d", a.Term, term)
		}
		if r := c.rows["prod"]; a.Role == Cacher && r != nil && a.Term == r.term && r.holder != "" && r.holder != c.idOf(c.names[id]) {
			c.problem("member %d reports in term %d, which the store gave to %s", id, a.Term, r.holder)
		}
	}
	if cacher != 0 && c.sent[cacher].Role != Cacher {
		c.problem("the cacher %d was told that it is %q", cacher, c.sent[cacher].Role)
	}
	if len(c.open) > 1 {
		c.problem("%d questions are open at once: %v", len(c.open), c.open)
	}
	if phase := c.fleet.Phase("prod"); (phase == Held || phase == Vacant) != (len(c.open) == 0) {
		c.problem("the phase is %s, and open are %v", phase, c.open)
	}
}

// settle lets the store answer everything, and checks that the account comes to rest: one of the agents that want it reports it,
// or the store knows that nobody does, and no call waits.
func (c *checked) settle() {
	for range 5 {
		for range 20 {
			if len(c.open) == 0 {
				break
			}
			c.answerOne(0, answerOK)
			c.check()
		}
		c.rejectWrites()
		c.wait(accountInterval)
		c.check()
	}
	if len(c.open) > 0 {
		c.problem("it does not come to rest: %v is open", c.open)
	}
	for id := range c.asked {
		if c.replies[id] != 1 {
			c.problem("request %d has %d replies", id, c.replies[id])
		}
	}
	var wanting []MemberID
	for id, m := range c.fleet.members {
		_, registered := m.registered["prod"]
		if a := c.fleet.accounts["prod"]; registered && a != nil && a.has(m) { // the callers of failed registrations retry
			wanting = append(wanting, id)
		}
	}
	cacher, term := c.fleet.Cacher("prod")
	r := c.rows["prod"]
	switch {
	case len(wanting) > 0 && !slices.Contains(wanting, cacher):
		c.problem("%d agents want the account, and %d has it", len(wanting), cacher)
	case len(wanting) > 0 && (r == nil || r.term != term || r.holder != c.idOf(c.names[cacher])):
		c.problem("%s has the account in term %d, but stored is %q in term %d", c.nameOf(cacher), term, r.holder, r.term)
	case len(wanting) == 0 && (cacher != 0 || r != nil && r.holder != ""):
		c.problem("nobody wants the account, and %d has it; stored is %+v", cacher, r)
	case len(wanting) == 0 && len(c.fleet.accounts) > 0:
		c.problem("the account is not forgotten")
	}
	for id, a := range c.sent {
		if a.Role == Cacher && id != cacher {
			c.problem("member %d still believes that it is the cacher", id)
		}
	}
}

// rejectWrites rejects the writes of a cacher whose term is not the stored one, as after a removal whose answer was lost.
func (c *checked) rejectWrites() {
	cacher, term := c.fleet.Cacher("prod")
	if r := c.rows["prod"]; cacher != 0 && (r == nil || r.term != term) {
		c.step(Revoked{Member: cacher, Account: "prod", Term: term, Reason: errStore})
	}
}

// fingerprint describes all that decides what follows. Terms and attempts are left out: they only rise.
func (c *checked) fingerprint() string {
	var b strings.Builder
	if a := c.fleet.accounts["prod"]; a != nil {
		fmt.Fprint(&b, a.currentPhase(), ids(a.candidates), a.cacher, a.unreleased, a.uncertain, a.handover, a.gap, len(a.awaiting), a.job.kind)
		fmt.Fprint(&b, formatJob(a.job), " waiting")
		for _, j := range a.waiting {
			fmt.Fprint(&b, j.kind, formatJob(j))
		}
		if r := c.rows["prod"]; r != nil {
			fmt.Fprint(&b, " behind ", r.term-a.term)
		}
	}
	if r := c.rows["prod"]; r != nil {
		fmt.Fprint(&b, " stored ", r.holder)
	}
	for _, id := range slices.Sorted(maps.Keys(c.fleet.members)) {
		m := c.fleet.members[id]
		_, registered := m.registered["prod"]
		fmt.Fprint(&b, " member ", id, c.names[id], registered, m.roles["prod"].Role, c.sent[id].Role)
	}
	fmt.Fprint(&b, " joins ", count(c.path, move{"join", "a"}), count(c.path, move{"join", "b"}), " open ")
	for _, e := range c.open {
		fmt.Fprintf(&b, "%T", e)
	}
	fmt.Fprintf(&b, " late %T %v", c.lastAnswer, len(c.path) > 0 && c.path[len(c.path)-1].what == "late")
	return b.String()
}

func ids(members []*member) (all []MemberID) {
	for _, m := range members {
		all = append(all, m.id)
	}
	return all
}

func formatJob(j job) string {
	var id MemberID
	if j.member != nil {
		id = j.member.id
	}
	return fmt.Sprint(id, ids(j.others), j.from, j.reason, j.goesOn, j.request != 0)
}
