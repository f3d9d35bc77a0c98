package assignment

import (
	"time"

	"github.com/vedette-io/vedette"
)

// Request identifies a call that waits for a Reply; 0 for none.
type Request uint64

// Attempt identifies what a fleet has asked the store about an account. An answer to another attempt than the
// one that is open comes late, and is ignored.
type Attempt uint64

// Event is something that has happened.
type Event interface{ isEvent() }

// What agents do.
type (
	// Joined means that an agent has connected.
	Joined struct {
		Member MemberID
		Agent  Agent
	}
	// Left means that the connection of an agent has ended. The reply follows when its accounts have other cachers or are released.
	Left struct {
		Member  MemberID
		Request Request
	}
	// Registered means that an agent requests a role in an account. An agent that is the cacher already is assigned again, because
	// it restarted or its configuration has changed. The namespaces of the account are passed on and not kept, because there may be
	// very many. The reply follows when the agent has a role; its error comes from the store.
	Registered struct {
		Member  MemberID
		Account vedette.Account
		// Prepared are the properties of Account.
		Prepared *Prepared
		Request  Request
	}
	// Deregistered means that an agent gives up its role in an account.
	Deregistered struct {
		Member  MemberID
		Account vedette.AccountName
		Request Request
	}
	// Revoked means that the store rejects the writes of an agent in a term. The agent registers again later.
	Revoked struct {
		Member  MemberID
		Account vedette.AccountName
		Term    vedette.Term
		Reason  error
		Request Request
	}
	// ErrorReported means that an agent reports an error of an account, or none any more.
	ErrorReported struct {
		Member  MemberID
		Account vedette.AccountName
		IsSet   bool
	}
	// AliveAnnounced says at which interval an agent will send messages; 0 for none.
	AliveAnnounced struct {
		Member   MemberID
		Interval time.Duration
	}
)

// What the store answers.
type (
	// Admitted answers Admit. The error is of kind vedette.Invalid, Conflict or Denied if the agent may not report the account.
	Admitted struct {
		Account vedette.AccountName
		Attempt Attempt
		Stored  StoredAccount
		Err     error
	}
	// Acquired answers Acquire. With an error, a term of 0 means that the store may have assigned the next term all the same. IsOvertaken
	// means that nothing was assigned, because the account has another term than when the agent was admitted.
	Acquired struct {
		Account     vedette.AccountName
		Attempt     Attempt
		IsOvertaken bool
		Term        vedette.Term
		Marks       map[vedette.Feed]vedette.Mark
		// CompleteAt is up to when the account is stored completely; zero if it was never read.
		CompleteAt time.Time
		Err        error
	}
	// Released answers Release.
	Released struct {
		Account vedette.AccountName
		Attempt Attempt
		Err     error
	}
	// Counted answers CountObjects: how many objects accounts have.
	Counted struct {
		Sizes map[vedette.AccountName]int64
		Err   error
	}
	// Examined answers Examine.
	Examined struct {
		Account vedette.AccountName
		Attempt Attempt
		// Denied are the feeds that the cluster denies.
		Denied map[vedette.Feed]bool
		// IsLive reports whether there are other feeds, and all of these are live and can be continued from a mark.
		IsLive bool
		// IsBusy reports whether the account has an operation.
		IsBusy bool
	}
)

// StoredAccount is what a fleet needs to know of a stored account.
type StoredAccount struct {
	Properties  vedette.Properties
	Prepared    *Prepared // Properties
	Term        vedette.Term
	Holder      vedette.AgentID
	PermittedBy vedette.AgentID // the agent that set the permissions
	Registered  time.Time
	// Elsewhere is the cacher if it is connected to another server that is alive; nil otherwise.
	Elsewhere *Elsewhere
}

// What other servers do.
type (
	// ElsewhereEnded means that the cacher that an account has at another server in a term, or in an earlier one, has left, or that the server
	// has ended.
	ElsewhereEnded struct {
		Account vedette.AccountName
		Term    vedette.Term
	}
	// PeerUpdated is an update of another server; empty if only that it is there. An update about an agent or an account replaces what was
	// said before.
	PeerUpdated struct {
		Server     vedette.ServerID
		Agents     []AgentUpdate
		Left       []MemberID
		Accounts   []AccountUpdate
		IsDraining bool
	}
	// PeerLost means that another server is not heard any more.
	PeerLost struct{ Server vedette.ServerID }
	// Offered means that another server offers an account that one of its agents reports.
	Offered struct {
		Server vedette.ServerID
		Offer
	}
	// Declined means that another server does not take an account that it was offered, or that the offer did not reach it.
	Declined struct {
		Server  vedette.ServerID
		Account vedette.AccountName
		Number  Attempt
		IsBusy  bool // it was not sent, because the account has an operation
	}
	// Looked answers Look, and says what the store has now and then.
	Looked struct {
		Account   vedette.AccountName
		Exists    bool
		Term      vedette.Term // if it does not exist, the one in which an agent of this server reported it when the store was asked
		Elsewhere *Elsewhere   // as in StoredAccount
		Err       error
	}
	// Draining means that this server stops soon: its accounts go to agents of other servers, and it takes none.
	Draining struct{}
)

// What operators and time do.
type (
	// ChangeWanted means that an operator wants to replace or remove an account, while no agent can register it.
	ChangeWanted struct {
		Account vedette.AccountName
		Change  Change
		Agent   vedette.AgentID // of a Transfer: the agent whose cluster gets the name; empty for the only one
		Request Request
	}
	// Changed answers MakeChange.
	Changed struct {
		Account vedette.AccountName
		Attempt Attempt
		Err     error
	}
	// Tick means that ListenInterval has passed.
	Tick struct {
		// Receiving says since when the server waits for a message of each agent, in any unit; 0 if it does not wait for one.
		Receiving map[MemberID]int64
	}
)

// Change is what an operator does with an account.
type Change string

// The changes.
const (
	Transfer Change = "transfer" // give the name to the cluster of an agent that was refused
	Removal  Change = "removal"
)

func (Joined) isEvent()         {}
func (Left) isEvent()           {}
func (Registered) isEvent()     {}
func (Deregistered) isEvent()   {}
func (Revoked) isEvent()        {}
func (ErrorReported) isEvent()  {}
func (AliveAnnounced) isEvent() {}
func (Admitted) isEvent()       {}
func (Acquired) isEvent()       {}
func (Released) isEvent()       {}
func (ElsewhereEnded) isEvent() {}
func (PeerUpdated) isEvent()    {}
func (PeerLost) isEvent()       {}
func (Offered) isEvent()        {}
func (Declined) isEvent()       {}
func (Looked) isEvent()         {}
func (Draining) isEvent()       {}
func (Counted) isEvent()        {}
func (Examined) isEvent()       {}
func (ChangeWanted) isEvent()   {}
func (Changed) isEvent()        {}
func (Tick) isEvent()           {}
