package assignment

import "github.com/vedette-io/vedette"

// Effect is something to do.
type Effect interface{ isEffect() }

type (
	// Admit asks whether an account may be registered like this. Admitted answers.
	Admit struct {
		Account vedette.Account
		Attempt Attempt
		Source  string // of the agent
	}
	// Acquire makes an agent the cacher of an account in a new term, and reads up to where the feeds of the account are stored.
	// Acquired answers.
	Acquire struct {
		Account         vedette.Account
		Attempt         Attempt
		Agent           vedette.AgentID
		Source          string // of the agent
		KeepNamespaces  bool   // the stored ones; those of Account are not known
		KeepPermissions bool   // the stored ones, because wider ones wait
		// After is the term that the account had when the agent was admitted. If it has another one, another server has acquired it.
		After vedette.Term
	}
	// Release records that no agent holds an account in any of the terms, which starts its grace period. Released answers.
	Release struct {
		Account vedette.AccountName
		Attempt Attempt
		Terms   []vedette.Term
		Source  string // of the agent that was last to get a term
	}
	// KeepFreshness stores up to when an account was complete, because its cacher has left. It precedes the Release.
	KeepFreshness struct {
		Account vedette.AccountName
		Member  MemberID
		Term    vedette.Term
	}
	// Send tells an agent its role.
	Send struct {
		Member     MemberID
		Assignment Assignment
	}
	// NotifyAssigned says that an account has a new cacher.
	NotifyAssigned struct{ Account vedette.AccountName }
	// Reply ends a call.
	Reply struct {
		Request Request
		Agents  []vedette.AgentID // of a Removal: whose roles it has ended
		Err     error
	}
	// MakeChange makes the change that an operator wants. Account is, of a Transfer, the account as the agent registered it. Changed answers.
	MakeChange struct {
		Account vedette.Account
		Attempt Attempt
		Request Request
	}
	// SharedChanged says whether an agent has an account that other agents have, too. Such an agent is asked to show more often that it
	// is alive.
	SharedChanged struct {
		Member   MemberID
		IsShared bool
	}
	// AskToLeave asks an agent to connect to another server. This one goes on to serve it, and accepts it again.
	AskToLeave struct {
		Member MemberID
		Reason string
	}
	// CountObjects asks how many objects the accounts have. Counted answers.
	CountObjects struct{}
	// Examine asks whether an account may be moved, or is live after its move. Examined answers.
	Examine struct {
		Account vedette.AccountName
		Attempt Attempt
	}
	// SendUpdate tells all other servers what has changed of agents and accounts, and whether this server drains.
	SendUpdate struct {
		Agents   []AgentUpdate
		Left     []MemberID
		Accounts []AccountUpdate
	}
	// SendOffer offers an account to another server. Declined answers if that does not take it. If it does, the store has it.
	SendOffer struct {
		Server vedette.ServerID
		Offer
	}
	// Decline declines an offer of another server.
	Decline struct {
		Server  vedette.ServerID
		Account vedette.AccountName
		Number  Attempt
	}
	// Look asks the store who has an account. Looked answers.
	Look struct{ Account vedette.AccountName }
	// Log writes a line to the log. Args are alternating names and values.
	Log struct {
		Level   LogLevel
		Message string
		Args    []any
	}
)

// LogLevel is the level of a line of the log.
type LogLevel string

// The levels.
const (
	Debug LogLevel = "DEBUG"
	Info  LogLevel = "INFO"
	Warn  LogLevel = "WARN"
)

// logger emits lines of the log, with the methods of a slog.Logger.
type logger struct{ fleet *Fleet }

// Debug emits a line that helps developers.
func (l logger) Debug(message string, args ...any) { l.fleet.emit(Log{Debug, message, args}) }

// Info emits a line about what usually happens.
func (l logger) Info(message string, args ...any) { l.fleet.emit(Log{Info, message, args}) }

// Warn emits a line about what operators should know.
func (l logger) Warn(message string, args ...any) { l.fleet.emit(Log{Warn, message, args}) }

func (Admit) isEffect()          {}
func (Acquire) isEffect()        {}
func (Release) isEffect()        {}
func (KeepFreshness) isEffect()  {}
func (Send) isEffect()           {}
func (NotifyAssigned) isEffect() {}
func (Reply) isEffect()          {}
func (MakeChange) isEffect()     {}
func (SharedChanged) isEffect()  {}
func (AskToLeave) isEffect()     {}
func (CountObjects) isEffect()   {}
func (Examine) isEffect()        {}
func (SendUpdate) isEffect()     {}
func (SendOffer) isEffect()      {}
func (Decline) isEffect()        {}
func (Look) isEffect()           {}
func (Log) isEffect()            {}
