package assignment

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// simulation is a fleet with a store in memory, whose answers the test chooses.
type simulation struct {
	fleet    *Fleet
	process  string // of all agents; empty if each has its own
	server   vedette.ServerID
	ended    map[vedette.ServerID]bool // servers that are known to have ended
	now      time.Time
	agents   map[string]MemberID // connected ones
	names    map[MemberID]string // all
	frozen   map[MemberID]bool
	rows     map[vedette.AccountName]*row
	sizes    map[vedette.AccountName]int64
	open     []Effect // what the store has not answered
	happened []Effect
	requests Request
	replies  map[Request]int

	onMessage  func(Effect)     // with what is sent to other servers; may be nil
	onAsked    func(AskToLeave) // may be nil
	lastAnswer Event
	heard      int64
	onStep     func(e Event, from, to Phase) // with the phases of prod; may be nil
}

// row is a stored account.
type row struct {
	vedette.Account
	term        vedette.Term
	holder      vedette.AgentID // empty for none
	server      vedette.ServerID
	permittedBy vedette.AgentID
}

func newSimulation(cfg Config) *simulation {
	return &simulation{fleet: New(cfg), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), agents: map[string]MemberID{}, names: map[MemberID]string{},
		frozen: map[MemberID]bool{}, rows: map[vedette.AccountName]*row{}, sizes: map[vedette.AccountName]int64{}, replies: map[Request]int{}}
}

func newAccount(name vedette.AccountName, cluster, read string) vedette.Account {
	a := vedette.Account{Name: name, Cluster: vedette.Cluster{UID: "u"}}
	if cluster != "" {
		a.Cluster.UID = cluster
	}
	if read != "" {
		a.Properties.Permissions = &vedette.Permissions{Read: strings.Split(read, ",")}
	}
	return a
}

func (s *simulation) newRequest() Request {
	s.requests++
	return s.requests
}

func (s *simulation) join(agent, zone string) {
	id := MemberID(len(s.names) + 1)
	s.agents[agent], s.names[id] = id, agent
	s.step(Joined{Member: id, Agent: Agent{ID: s.idOf(agent), ZoneID: zone, Process: s.process}})
}

// idOf returns the id of an agent: all connections of one process have the same.
func (s *simulation) idOf(agent string) vedette.AgentID {
	if s.process != "" {
		return "process"
	}
	return vedette.AgentID(agent)
}

func (s *simulation) nameOf(id MemberID) string { return fmt.Sprintf("%s(%d)", s.names[id], id) }

// step handles an event. What asks the store stays open.
func (s *simulation) step(e Event) {
	if r, ok := e.(Registered); ok {
		r.Prepared = Prepare(r.Account.Properties)
		e = r
	}
	from := s.fleet.Phase("prod")
	effects := s.fleet.Step(e, s.now)
	if s.onStep != nil {
		s.onStep(e, from, s.fleet.Phase("prod"))
	}
	for _, effect := range effects {
		s.happened = append(s.happened, effect)
		switch effect := effect.(type) {
		case Admit, Acquire, Release, MakeChange, CountObjects, Examine, Look:
			s.open = append(s.open, effect)
		case SendUpdate, SendOffer, Decline:
			if s.onMessage != nil {
				s.onMessage(effect)
			}
		case AskToLeave:
			if s.onAsked != nil {
				s.onAsked(effect)
			}
		case Reply:
			s.replies[effect.Request]++
		}
	}
}

// wait lets time pass. Agents that are not frozen are heard all the time.
func (s *simulation) wait(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(ListenInterval)
		s.heard++
		receiving := map[MemberID]int64{}
		for id := range s.names {
			receiving[id] = s.heard
			if s.frozen[id] {
				receiving[id] = 1
			}
		}
		s.step(Tick{Receiving: receiving})
	}
}

// answer is what the store answers.
type answer string

const (
	answerOK      answer = "ok"
	answerFail    answer = "fail" // it has done nothing
	answerLost    answer = "lost" // it has done it, but the answer is lost
	answerRefusal answer = "refuse"
)

var errStore = errors.New("the store does not answer")

func accountOf(e Effect) vedette.AccountName {
	switch e := e.(type) {
	case Admit:
		return e.Account.Name
	case Acquire:
		return e.Account.Name
	case Release:
		return e.Account
	case MakeChange:
		return e.Account.Name
	case Examine:
		return e.Account
	case Look:
		return e.Account
	}
	return ""
}

// answer lets the store answer what is open about an account, or what was asked first if the account is empty.
func (s *simulation) answer(account vedette.AccountName, kind answer) error {
	i := slices.IndexFunc(s.open, func(e Effect) bool { return account == "" || accountOf(e) == account })
	if i < 0 {
		return errors.New("nothing is open")
	}
	e := s.open[i]
	s.open = slices.Delete(s.open, i, i+1)
	s.lastAnswer = s.answerTo(e, kind)
	s.step(s.lastAnswer)
	return nil
}

func (s *simulation) answerTo(e Effect, kind answer) Event {
	err := map[answer]error{answerFail: errStore, answerLost: errStore, answerRefusal: vedette.Errorf(vedette.Denied, "not this agent")}[kind]
	works := kind == answerOK || kind == answerLost
	switch e := e.(type) {
	case Admit:
		return s.admit(e, err)
	case Acquire:
		if !works {
			return Acquired{Account: e.Account.Name, Attempt: e.Attempt, Err: errStore}
		}
		return s.acquire(e, err)
	case Release:
		if r := s.rows[e.Account]; works && r != nil && r.server == s.server && slices.Contains(e.Terms, r.term) {
			r.holder, r.server = "", ""
		}
		return Released{Account: e.Account, Attempt: e.Attempt, Err: err}
	case MakeChange:
		if works && e.Account.Cluster.UID == "" {
			delete(s.rows, e.Account.Name)
		} else if works {
			s.rows[e.Account.Name] = &row{Account: e.Account, term: s.rows[e.Account.Name].term + 10}
		}
		return Changed{Account: e.Account.Name, Attempt: e.Attempt, Err: err}
	case CountObjects:
		return Counted{Sizes: maps.Clone(s.sizes), Err: err}
	case Look:
		return s.look(e, err)
	case Examine:
		return Examined{Account: e.Account, Attempt: e.Attempt, IsLive: kind == answerOK}
	}
	return nil
}

func (s *simulation) look(e Look, err error) Event {
	r := s.rows[e.Account]
	if err != nil || r == nil {
		return Looked{Account: e.Account, Err: err}
	}
	return Looked{Account: e.Account, Exists: true, Term: r.term, Elsewhere: s.elsewhere(r)}
}

// elsewhere returns the stored cacher if it is connected to another server that is alive.
func (s *simulation) elsewhere(r *row) *Elsewhere {
	if r.holder == "" || r.server == s.server || s.ended[r.server] {
		return nil
	}
	return &Elsewhere{Server: r.server, Agent: r.holder, Term: r.term}
}

func (s *simulation) admit(e Admit, err error) Event {
	r := s.rows[e.Account.Name]
	if r == nil {
		r = &row{Account: e.Account}
		s.rows[e.Account.Name] = r
	}
	if err == nil && !r.Cluster.Same(e.Account.Cluster) {
		err = vedette.Errorf(vedette.Conflict, "the name belongs to %s", r.Cluster)
	}
	return Admitted{Account: e.Account.Name, Attempt: e.Attempt, Err: err,
		Stored: StoredAccount{Elsewhere: s.elsewhere(r), Properties: r.Properties, Prepared: Prepare(r.Properties), Term: r.term, Holder: r.holder, PermittedBy: r.permittedBy}}
}

func (s *simulation) acquire(e Acquire, err error) Event {
	r := s.rows[e.Account.Name]
	if r == nil { // an operator has removed it meanwhile
		return Acquired{Account: e.Account.Name, Attempt: e.Attempt, Err: errStore}
	}
	if r.term != e.After {
		return Acquired{Account: e.Account.Name, Attempt: e.Attempt, IsOvertaken: true}
	}
	permissions := r.Properties.Permissions
	r.Account, r.holder, r.server = e.Account, e.Agent, s.server
	if e.KeepPermissions {
		r.Properties.Permissions = permissions
	} else {
		r.permittedBy = e.Agent
	}
	r.term++
	if err != nil {
		return Acquired{Account: e.Account.Name, Attempt: e.Attempt, Err: err}
	}
	return Acquired{Account: e.Account.Name, Attempt: e.Attempt, Term: r.term}
}
