package dispatch

import "github.com/vedette-io/vedette"

// pendingOutcome is an operation that is not answered.
type pendingOutcome struct {
	outcome    chan vedette.Outcome    // has room for the one
	isLogs     bool                    // its outcome is a stream
	recipients map[recipient]bool      // the processes that it was sent to
	claims     map[*AttachedAgent]bool // who is sending its outcome on a stream of its own
}

// recipient is an agent's process. A process makes its name up, and no other agent is
// told it, so that it is the same on each connection. Agents that name none are
// known by their connection.
type recipient struct {
	agent    vedette.AgentID
	process  string
	attached *AttachedAgent // nil where the process has a name
}

func newPendingOutcome(op vedette.Operation) *pendingOutcome {
	_, logs := op.Args.(vedette.LogsArgs)
	return &pendingOutcome{outcome: make(chan vedette.Outcome, 1), isLogs: logs, recipients: map[recipient]bool{}, claims: map[*AttachedAgent]bool{}}
}

func (a *AttachedAgent) recipient() recipient {
	if a.process == "" {
		return recipient{agent: a.member.ID, attached: a}
	}
	return recipient{agent: a.member.ID, process: a.process}
}

// lookUpLocked returns the operation that waits for an outcome, nil where none does,
// and whether the visit's process was sent it.
func (d *Dispatcher) lookUpLocked(a *AttachedAgent, id vedette.OperationID) (*pendingOutcome, bool) {
	p := d.pending[id]
	return p, p != nil && p.recipients[a.recipient()]
}

// Claim reserves the right to send an operation's outcome, or its log, on a stream
// of its own, until release. It is false where the agent does not hold such an
// operation, or is sending its outcome already: then nothing of it need be read.
// The agent may forget an outcome that nobody waits for, but not one that is on its
// way: where its connection breaks it would do the operation once more.
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
		if !isRecipient && !isLog {
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

// countRefused counts an outcome that is not taken. One of an operation that has ended is
// late; one of an operation that another agent has is a lie, or a fault.
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

// ForgedOutcomes returns how many outcomes came from agents that had not been given the
// operation.
func (d *Dispatcher) ForgedOutcomes() int64 { return d.forgedOutcomes.Total() }
