package assignment

import (
	"time"

	"github.com/vedette-io/vedette"
)

// MemberID identifies a connected agent. An agent that connects again is another member, and several agents may have the same
// vedette.AgentID. It is never zero.
type MemberID uint64

// Agent describes an agent, as it introduced itself when it connected.
type Agent struct {
	ID       vedette.AgentID
	Version  string
	Hostname string
	ZoneID   string
	// Process is the name of the agent's process, which other agents do not learn; empty from older agents.
	Process   string
	Replicas  int // of the workload of the agent's pod, when the agent started; 0 if unknown
	Connected time.Time
	// Source is the host and the client certificate of the connection. What the store does for the agent counts for it.
	Source string
}

// Role is an agent's role in an account.
type Role string

// The roles. These values are part of the API.
const (
	Cacher  Role = "cacher"
	Standby Role = "standby"
	Refused Role = "refused"
	// Reaching means that the agent is configured with the account but cannot reach its cluster.
	// A Fleet gives nobody this role.
	Reaching Role = "reaching"
)

// Assignment is an agent's role in one account.
type Assignment struct {
	Account vedette.AccountName
	Role    Role
	Term    vedette.Term                  // only with role Cacher
	Marks   map[vedette.Feed]vedette.Mark // only with role Cacher: up to where each feed is stored
	Message string                        // only with role Refused: the reason
	Notice  string                        // for operators, not sent to the agent; may say more than Message
	// Conflict is the cluster of a refused agent if the name belongs to another one; otherwise nil.
	// It is for operators and not sent to the agent.
	Conflict *vedette.Cluster
}

// member is a connected agent.
type member struct {
	Agent
	id         MemberID
	joinedAt   time.Time
	load       int64 // the weights of the accounts whose cacher the agent is, or is about to be
	liveness   liveness
	roles      map[vedette.AccountName]Assignment
	registered map[vedette.AccountName]registered
	failing    map[vedette.AccountName]bool // the agent reports an error
	sent       sentState                    // to other servers
}

// registered is an account as an agent last registered it, without namespaces.
type registered struct {
	vedette.Account
	prepared *Prepared // its properties
	likeness Likeness
}

// succeeds reports whether an agent is a later connection of the process of another one, which has ended that one or is about to.
func (m *member) succeeds(other *member) bool {
	return other != nil && m.Process != "" && m.Process == other.Process && m.ID == other.ID && m.id > other.id
}

func newMember(id MemberID, agent Agent, now time.Time) *member {
	return &member{Agent: agent, id: id, joinedAt: now, roles: map[vedette.AccountName]Assignment{},
		registered: map[vedette.AccountName]registered{}, failing: map[vedette.AccountName]bool{}}
}

// send gives an agent a role. What operators need not see is not kept.
func (f *Fleet) send(m *member, a Assignment) {
	shown := a
	shown.Marks = nil
	if a.Notice != "" {
		shown.Message = ""
	}
	m.roles[a.Account] = shown
	f.emit(Send{Member: m.id, Assignment: a})
	if of := f.accounts[a.Account]; of != nil {
		f.touch(of)
	}
}

// lastNotice returns the last notice about the agent's registration of an account. A notice is
// logged only when it changes, because an agent may register as often as it likes.
func (m *member) lastNotice(name vedette.AccountName) string { return m.roles[name].Notice }

func (f *Fleet) setError(e ErrorReported) {
	m := f.members[e.Member]
	switch {
	case m == nil:
	case e.IsSet:
		m.failing[e.Account] = true
	default:
		delete(m.failing, e.Account)
	}
	if a := f.accounts[e.Account]; a != nil {
		f.touch(a)
	}
}
