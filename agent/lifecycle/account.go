// Package lifecycle decides what an agent does with one account: reach its cluster, register it, and report what the cluster has
// while the server wants that. An Account is a state machine: events go in, effects come out. It does no I/O and reads no clock;
// package agent executes the effects.
package lifecycle

import (
	"errors"
	"time"
)

// State is what becomes of an account. These values are part of the agent's health and metrics.
type State string

// The states. Reaching and Refused have a reason. They do not affect other accounts.
const (
	Reaching   State = "reaching"   // its cluster is not identified
	Registered State = "registered" // the server knows it, and has not decided
	Reporting  State = "reporting"
	Standby    State = "standby" // another agent reports it
	Refused    State = "refused" // it registers again, with backoff
)

// Account is one account of an agent. It is not safe for concurrent use.
type Account struct {
	state       State
	isConnected bool // its cluster was reached
	isWatching  bool
	hasEnded    bool

	// What was logged last. Failures may last for days, and refusals for as long as an operator needs.
	lastFailure   string
	lastRefusal   string
	lastRefusalAt time.Time
}

// New returns an account that waits for Started.
func New() *Account { return &Account{state: Reaching} }

// State returns the state.
func (a *Account) State() State { return a.state }

// Event is something that has happened.
type Event interface{ isEvent() }

type (
	// Started begins.
	Started struct{}
	// Connected answers Connect and Identify: the cluster is identified and registered.
	Connected struct{}
	// ConnectFailed answers Connect and Identify.
	ConnectFailed struct{ Err error }
	// RetryDue ends the pause that Retry began.
	RetryDue struct{}
	// CredentialsMayHaveChanged means that somebody wants the files of credentials to be read now.
	CredentialsMayHaveChanged struct{}
	// PropertiesChanged means that the configuration has other properties of the account.
	PropertiesChanged struct{}
	// Assigned is the decision of the server.
	Assigned struct {
		Role   Role
		Reason string // of a Refusal
	}
	// Watching answers Watch: the account is reported. An assignment that is outdated has no answer: another one follows.
	Watching struct{}
	// WatchFailed means that the watches have ended by themselves.
	WatchFailed struct{ Err error }
	// ClusterChanged means that the address or the credentials lead, or may lead, to another cluster.
	ClusterChanged struct{}
	// Stopped means that the account was removed, or the agent ends.
	Stopped struct{}
)

// Role is what the server wants.
type Role string

// The roles.
const (
	RoleCacher  Role = "cacher"
	RoleStandby Role = "standby"
	RoleRefused Role = "refused"
)

// Effect is something to do.
type Effect interface{ isEffect() }

type (
	// Connect reaches the cluster, identifies it, and registers the account.
	Connect struct{}
	// Identify identifies the cluster again, and registers the account.
	Identify struct{}
	// Register registers the account again, as the same cluster.
	Register struct{}
	// Watch reports the account in the term of the last assignment.
	Watch struct{}
	// StopWatching ends the watches, and waits until they have ended.
	StopWatching struct{}
	// Forget forgets what was not sent yet of the account.
	Forget struct{}
	// Deregister tells the server that the agent does not serve the account.
	Deregister struct{}
	// Disconnect deregisters and forgets the account, and closes the connections to its cluster.
	Disconnect struct{}
	// Retry begins a pause, which is longer each time.
	Retry struct{}
	// StopRetry ends the pause, without RetryDue.
	StopRetry struct{}
	// ResetRetry makes the next pause short.
	ResetRetry struct{}
	// Report tells the server, the health and the metrics the state, and the reason if there is one.
	Report struct {
		State State
		Err   error
	}
	// LogUnreachable writes to the log that the cluster cannot be reached.
	LogUnreachable struct{ Err error }
	// LogRefused writes to the log that the server has refused the account.
	LogRefused struct{ Reason error }
	// LogWatchFailed writes to the log that the watches have ended by themselves.
	LogWatchFailed struct{ Err error }
)

func (Started) isEvent()                   {}
func (Connected) isEvent()                 {}
func (ConnectFailed) isEvent()             {}
func (RetryDue) isEvent()                  {}
func (CredentialsMayHaveChanged) isEvent() {}
func (PropertiesChanged) isEvent()         {}
func (Assigned) isEvent()                  {}
func (Watching) isEvent()                  {}
func (WatchFailed) isEvent()               {}
func (ClusterChanged) isEvent()            {}
func (Stopped) isEvent()                   {}

func (Connect) isEffect()        {}
func (Identify) isEffect()       {}
func (Register) isEffect()       {}
func (Watch) isEffect()          {}
func (StopWatching) isEffect()   {}
func (Forget) isEffect()         {}
func (Deregister) isEffect()     {}
func (Disconnect) isEffect()     {}
func (Retry) isEffect()          {}
func (StopRetry) isEffect()      {}
func (ResetRetry) isEffect()     {}
func (Report) isEffect()         {}
func (LogUnreachable) isEffect() {}
func (LogRefused) isEffect()     {}
func (LogWatchFailed) isEffect() {}

// Step handles an event, and returns what follows from it, in order. Events that do not concern the state are ignored.
func (a *Account) Step(e Event, now time.Time) []Effect {
	if a.hasEnded {
		return nil
	}
	if _, ok := e.(Stopped); ok {
		return a.stopped()
	}
	if a.isConnected {
		return a.serve(e, now)
	}
	switch e := e.(type) {
	case Started, RetryDue:
		return []Effect{Connect{}}
	case CredentialsMayHaveChanged:
		return []Effect{ResetRetry{}, Connect{}}
	case Connected:
		a.isConnected, a.lastFailure = true, ""
		return append([]Effect{ResetRetry{}}, a.become(Registered, nil)...)
	case ConnectFailed:
		return a.connectFailed(e)
	}
	return nil
}

// serve handles an event of an account whose cluster was reached.
func (a *Account) serve(e Event, now time.Time) []Effect {
	switch e := e.(type) {
	case Assigned:
		return a.assigned(e, now)
	case Watching:
		a.isWatching = true
		return a.become(Reporting, nil)
	case WatchFailed:
		a.isWatching = false // no one watches the cluster meanwhile, so the server must know
		effects := append([]Effect{LogWatchFailed(e), StopWatching{}, Deregister{}}, a.become(Registered, nil)...)
		return append(effects, Retry{})
	case RetryDue:
		return []Effect{Identify{}}
	case Connected:
		return a.reachedAgain()
	case ConnectFailed:
		return append(a.become(Reaching, e.Err), Retry{})
	case PropertiesChanged:
		return []Effect{Register{}}
	case ClusterChanged:
		a.isConnected, a.isWatching = false, false
		effects := append([]Effect{StopWatching{}, Disconnect{}}, a.become(Reaching, nil)...)
		return append(effects, ResetRetry{}, Connect{})
	}
	return nil
}

// reachedAgain ends the state of a cluster that was not identified for a time. Its watches may have gone on.
func (a *Account) reachedAgain() []Effect {
	switch {
	case a.state != Reaching:
		return nil
	case a.isWatching:
		return a.become(Reporting, nil)
	}
	return a.become(Registered, nil)
}

func (a *Account) stopped() []Effect {
	a.hasEnded, a.isWatching = true, false
	if !a.isConnected {
		return nil
	}
	return []Effect{StopWatching{}, Disconnect{}}
}

func (a *Account) become(s State, err error) (effects []Effect) {
	if a.state == Refused { // it registers again only if it is refused again
		effects = []Effect{StopRetry{}}
	}
	a.state = s
	return append(effects, Report{s, err})
}

func (a *Account) connectFailed(e ConnectFailed) []Effect {
	effects := a.become(Reaching, e.Err)
	if failure := e.Err.Error(); failure != a.lastFailure {
		a.lastFailure = failure
		effects = append(effects, LogUnreachable(e))
	}
	return append(effects, Retry{})
}

// assigned follows the decision of the server.
func (a *Account) assigned(e Assigned, now time.Time) []Effect {
	if e.Role == RoleCacher {
		return []Effect{ResetRetry{}, Watch{}}
	}
	a.isWatching = false
	effects := []Effect{StopWatching{}, Forget{}}
	if e.Role == RoleStandby {
		return append(effects, a.become(Standby, nil)...)
	}
	reason := errors.New(e.Reason)
	effects = append(effects, a.become(Refused, reason)...)
	if e.Reason != a.lastRefusal || now.Sub(a.lastRefusalAt) >= time.Minute {
		a.lastRefusal, a.lastRefusalAt = e.Reason, now
		effects = append(effects, LogRefused{reason})
	}
	return append(effects, Retry{})
}
