package dispatch

import (
	"io"

	"github.com/vedette-io/vedette"
)

// pendingOutcome is an operation without an outcome.
type pendingOutcome struct {
	account    vedette.AccountName
	outcome    chan vedette.Outcome    // has room for one
	forwarded  chan vedette.Outcome    // from another server, which has written it through; has room for one
	encoded    chan io.ReadCloser      // an outcome that is passed to another server as it is; has room for one
	isLogs     bool                    // its outcome is a stream
	isPassedOn bool                    // large outcomes are passed to another server as they are: nothing is written through
	relay      *Relay                  // of an operation that another server has accepted; otherwise nil
	superseded chan struct{}           // closed when another relay of the same operation replaces this one
	serving    servingAgent            // that has the operation; nil if none has
	isSent     bool                    // to serving
	recipients map[recipient]bool      // the processes to which it was sent
	claims     map[*AttachedAgent]bool // the agents that are sending its outcome on a separate stream
}

// recipient is an agent's process. A process chooses its name, and other agents never
// learn it, so it identifies the process across connections. A process without a name
// is identified by its connection.
type recipient struct {
	agent    vedette.AgentID
	process  string
	attached *AttachedAgent // nil if the process has a name
}

func newPendingOutcome(op vedette.Operation) *pendingOutcome {
	_, logs := op.Args.(vedette.LogsArgs)
	return &pendingOutcome{account: op.Account, outcome: make(chan vedette.Outcome, 1), forwarded: make(chan vedette.Outcome, 1),
		encoded: make(chan io.ReadCloser, 1), isLogs: logs,
		recipients: map[recipient]bool{},
		claims:     map[*AttachedAgent]bool{}, superseded: make(chan struct{})}
}

func (a *AttachedAgent) recipient() recipient {
	if a.process == "" {
		return recipient{agent: a.member.ID, attached: a}
	}
	return recipient{agent: a.member.ID, process: a.process}
}

// lookUpLocked returns the pending operation, nil if there is none, and whether it was
// sent to the process of the attached agent.
func (d *Dispatcher) lookUpLocked(a *AttachedAgent, id vedette.OperationID) (*pendingOutcome, bool) {
	p := d.pending[id]
	return p, p != nil && p.recipients[a.recipient()]
}

// Claim reserves the right to send an operation's outcome, or its log, on a separate
// stream, until release is called. ok is false if the agent was not sent such an
// operation or is already sending its outcome; the stream need not be read then. The
// agent may forget an outcome without a waiting caller. It must keep an outcome that is
// being sent, because if its connection breaks it would execute the operation again.
func (a *AttachedAgent) Claim(id vedette.OperationID, isLog bool) (release func(), ok bool) {
	d := a.dispatcher
	d.mu.Lock()
	p, isRecipient := d.lookUpLocked(a, id)
	ok = isRecipient && !p.claims[a] && (p.isLogs || !isLog)
	if ok {
		p.claims[a] = true
	}
	d.mu.Unlock()
	if !ok {
		switch {
		case isRecipient || isLog:
		case p == nil:
			d.forgetUnclaimed(a, id)
		default:
			a.stream.Forget(id)
		}
		a.countRefused(id, p != nil && !isRecipient)
		return nil, false
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(p.claims, a)
	}, true
}

// PassesOn reports whether the outcome of an operation that was claimed goes to another server as it is.
func (a *AttachedAgent) PassesOn(id vedette.OperationID) bool {
	d := a.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	p, isRecipient := d.lookUpLocked(a, id)
	return isRecipient && p.isPassedOn
}

// HandleEncoded passes an encoded outcome to the server that has accepted the operation, and reports whether that waits for it. It must
// be read to its end, or closed.
func (a *AttachedAgent) HandleEncoded(id vedette.OperationID, out io.ReadCloser) bool {
	d := a.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	p, isRecipient := d.lookUpLocked(a, id)
	if !isRecipient || !p.isPassedOn {
		return false
	}
	delete(d.pending, id)
	p.encoded <- out
	return true
}

// countRefused counts and logs a rejected outcome. The outcome of an operation that has
// ended is late. An outcome from an agent that was not sent the operation is forged, or
// a fault.
func (a *AttachedAgent) countRefused(id vedette.OperationID, isForged bool) {
	d := a.dispatcher
	if !isForged {
		if n, ok := d.lateOutcomes.Allow(); ok {
			d.log.Info("ignored late outcome", "operation", id, "agent", a.member.ID, "count", n)
		}
		return
	}
	if n, ok := d.forgedOutcomes.Allow(); ok {
		d.log.Warn("rejected forged outcome: the operation was not sent to this agent", "operation", id, "agent", a.member.ID, "count", n)
	}
}

// ForgedOutcomes returns the number of outcomes from agents that were not sent the
// operation.
func (d *Dispatcher) ForgedOutcomes() int64 { return d.forgedOutcomes.Total() }
