// Package lifecycle decides what happens to one operation, from its acceptance until it is answered or lost. An
// Operation is a state machine: events go in, effects come out. It does no I/O and reads no clock; package dispatch executes
// the effects.
//
// Guarantees:
//
//   - An operation that cannot have taken effect fails. If it is unknown whether it took effect, it is lost, and the
//     message says what is known.
//   - It takes effect once. It is sent again to the same process, which knows what it did. It is sent to another process
//     only if it is idempotent.
//   - It is sent to agents of the cluster for which it was accepted only.
package lifecycle

import (
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
)

// State is where an operation is.
type State string

// The states.
const (
	Accepted State = "accepted" // it was sent to nobody
	Sent     State = "sent"     // an agent has it
	Waiting  State = "waiting"  // the connection of the agent that has it is lost
	Ended    State = "ended"    // it has an outcome
)

// Agent is an agent's process.
type Agent struct {
	ID      vedette.AgentID
	Version string
	Process string // which identifies the process among those of the agent
}

// Delivery is one sending of an operation to an agent's process.
type Delivery struct {
	Agent  Agent
	SentAt time.Time
}

// Operation is an operation that has no outcome yet. It is not safe for concurrent use.
type Operation struct {
	op       vedette.Operation
	accepted time.Time

	state    State
	isLooked bool      // it was looked whether the account exists
	last     *Delivery // nil before the first
	previous *Delivery // the last one to another process than last; nil if there is none
	unsent   unsent    // what Returned restores
}

// unsent is what was known of an operation before it was last sent.
type unsent struct {
	state          State
	args           vedette.Args
	last, previous *Delivery
}

// New returns an operation that was accepted at a time, for the cluster that it names; with none, for the cluster that its account is
// known to have first.
func New(op vedette.Operation, accepted time.Time) *Operation {
	return &Operation{op: op, accepted: accepted, state: Accepted}
}

// NewResumed returns an operation that another server had accepted, and may have sent to an agent that is not known here. It may have
// taken effect, so it is sent only if it is idempotent.
func NewResumed(op vedette.Operation, accepted time.Time) *Operation {
	unknown := Agent{ID: "of a server that has ended", Process: unknownProcess}
	return &Operation{op: op, accepted: accepted, state: Waiting, last: &Delivery{Agent: unknown, SentAt: accepted}}
}

// unknownProcess is not the name of any process.
const unknownProcess = "\x00"

// State returns the state.
func (o *Operation) State() State { return o.state }

// LastDelivery returns the last sending; nil if there was none.
func (o *Operation) LastDelivery() *Delivery { return o.last }

// Obstacle is why no agent takes an operation; zero if none serves the account.
type Obstacle struct {
	Mute Agent // serves the account but accepts no operations; zero if there is none
	// Server says why another server, to which the agent is connected, does not pass the operation on, as a sentence without its full
	// stop. It is empty if no other server has the agent.
	Server string
}

// Event is something that has happened.
type Event interface{ isEvent() }

type (
	// Served means that an agent that accepts operations serves the account, and has registered it for a cluster.
	Served struct {
		Agent   Agent
		Cluster vedette.Cluster
	}
	// Unserved means that there is none at present.
	Unserved struct{}
	// Looked answers LookUpAccount. The cluster is zero if it is unknown.
	Looked struct {
		Cluster vedette.Cluster
		IsGone  bool // there is no such account
	}
	// Disconnected means that the connection of the agent that has the operation is lost.
	Disconnected struct{}
	// Returned means that another server, to which the agent is connected, has not sent the operation to it.
	Returned struct{}
	// Answered means that an outcome has arrived, from a process to which the operation was sent.
	Answered struct{ Outcome vedette.Outcome }
	// AgentWaitOver means that an operation has waited long enough for an agent.
	AgentWaitOver struct{ Obstacle Obstacle }
	// Over means that the deadline and its grace have passed, that the caller of a read has left, or that the server stops.
	Over struct{ Obstacle Obstacle }
)

// Effect is something to do.
type Effect interface{ isEffect() }

type (
	// LookUpAccount asks whether the account exists. Looked answers.
	LookUpAccount struct{}
	// Send sends the operation to the agent of the last Served.
	Send struct{ Operation vedette.Operation }
	// Cancel tells the agent that has the operation that nobody waits for it.
	Cancel struct{}
	// WarnAnotherCluster writes to the log that the account has another cluster than when the operation was accepted.
	WarnAnotherCluster struct {
		Agent           vedette.AgentID
		Expected, Found vedette.Cluster
	}
	// End ends the operation.
	End struct{ Outcome vedette.Outcome }
)

func (Served) isEvent()        {}
func (Unserved) isEvent()      {}
func (Looked) isEvent()        {}
func (Disconnected) isEvent()  {}
func (Returned) isEvent()      {}
func (Answered) isEvent()      {}
func (AgentWaitOver) isEvent() {}
func (Over) isEvent()          {}

func (LookUpAccount) isEffect()      {}
func (Send) isEffect()               {}
func (Cancel) isEffect()             {}
func (WarnAnotherCluster) isEffect() {}
func (End) isEffect()                {}

// Step handles an event, and returns what follows from it, in order. Events that do not concern the state are ignored.
func (o *Operation) Step(e Event, now time.Time) []Effect {
	if o.state == Ended {
		return nil
	}
	switch e := e.(type) {
	case Served:
		if o.state == Accepted || o.state == Waiting {
			return o.served(e, now)
		}
	case Unserved:
		if o.state == Accepted && !o.isLooked {
			o.isLooked = true
			return []Effect{LookUpAccount{}}
		}
	case Looked:
		if o.state == Accepted {
			return o.looked(e)
		}
	case Disconnected:
		if o.state == Sent {
			o.state = Waiting
		}
	case Returned:
		if o.state == Sent {
			o.returned()
		}
	case Answered:
		return o.end(o.interpret(e.Outcome))
	case AgentWaitOver:
		if o.state == Accepted {
			return o.end(o.unserved(e.Obstacle, now))
		}
	case Over:
		return o.over(e, now)
	}
	return nil
}

func (o *Operation) end(out vedette.Outcome) []Effect {
	o.state = Ended
	return []Effect{End{out}}
}

// served sends the operation to an agent, if it may have it.
func (o *Operation) served(e Served, now time.Time) []Effect {
	switch {
	case !o.canSendTo(e.Agent.Process):
		return o.end(o.abandoned(e.Agent))
	case !now.Before(o.op.Deadline): // this server stood still
		return o.end(o.tooLate(now))
	case !o.isFor(e.Cluster):
		return o.anotherCluster(e)
	}
	o.unsent = unsent{o.state, o.op.Args, o.last, o.previous}
	o.prepareResend(e.Agent.Process)
	o.state, o.last = Sent, &Delivery{e.Agent, now}
	op := o.op
	op.Cluster = e.Cluster // what the agent itself registered: what others did may be secret
	return []Effect{Send{op}}
}

// returned restores what was known before the last sending, because the agent has not received it.
func (o *Operation) returned() {
	u := o.unsent
	o.state, o.op.Args = u.state, u.args
	o.last, o.previous = u.last, u.previous
}

func (o *Operation) looked(e Looked) []Effect {
	o.acceptFor(e.Cluster)
	if e.IsGone {
		return o.end(Failed(http.StatusServiceUnavailable, vedette.ReasonNoAccount, "there is no account "+string(o.op.Account)+
			": no agent has registered it"))
	}
	return nil
}

func (o *Operation) over(e Over, now time.Time) []Effect {
	var effects []Effect
	if o.state == Sent {
		effects = append(effects, Cancel{})
	}
	return append(effects, o.end(o.timedOut(e.Obstacle, now))...)
}

// acceptFor sets the cluster that the operation is for, unless it is known already. The account may
// get another cluster while the operation waits for an agent.
func (o *Operation) acceptFor(cluster vedette.Cluster) {
	if o.op.Cluster == (vedette.Cluster{}) {
		o.op.Cluster = cluster
	}
}

// isFor reports whether an agent's cluster is the one that the operation was accepted for.
func (o *Operation) isFor(cluster vedette.Cluster) bool {
	o.acceptFor(cluster)
	return o.op.Cluster.Same(cluster)
}

// canSendTo reports whether the operation may be sent to a process. The process that
// already has it answers from memory. Another process may execute it a second time, so
// the operation must be idempotent.
func (o *Operation) canSendTo(process string) bool {
	return o.last == nil || o.last.Agent.Process == process || o.op.Idempotent()
}

// prepareResend adapts a deletion for another process than the one that has it. The
// first process may have deleted the object already, so it may be missing, and a new
// object with the same name must stay.
func (o *Operation) prepareResend(process string) {
	if o.last == nil || o.last.Agent.Process == process {
		return
	}
	o.previous = o.last
	if a, ok := o.op.Args.(vedette.DeleteArgs); ok && o.op.Changes() {
		a.MissingOK, a.OnlyKnown = true, a.KnownUID != ""
		o.op.Args = a
	}
}
