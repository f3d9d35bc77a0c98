package dispatch

import "github.com/vedette-io/vedette"

// pending is an operation that is not answered.
type pending struct {
	outcome chan vedette.Outcome // has room for the one
	logs    bool                 // its outcome is a stream
	holders map[holder]bool      // the processes that it was sent to
	claims  map[*Visit]bool      // who is sending its outcome on a stream of its own
}

// holder is an agent's process. A process makes its name up, and no other agent is
// told it, so that it is the same on each connection. Agents that name none are
// known by their connection.
type holder struct {
	agent   vedette.AgentID
	process string
	visit   *Visit // nil where the process has a name
}

func newPending(op vedette.Operation) *pending {
	_, logs := op.Args.(vedette.LogsArgs)
	return &pending{outcome: make(chan vedette.Outcome, 1), logs: logs, holders: map[holder]bool{}, claims: map[*Visit]bool{}}
}

func (v *Visit) holder() holder {
	if v.process == "" {
		return holder{agent: v.member.ID, visit: v}
	}
	return holder{agent: v.member.ID, process: v.process}
}

// heldLocked returns the operation that waits for an outcome, nil where none does,
// and whether the visit's process was sent it.
func (d *Dispatch) heldLocked(v *Visit, id vedette.OperationID) (*pending, bool) {
	p := d.waiting[id]
	return p, p != nil && p.holders[v.holder()]
}

// Claim reserves the right to send an operation's outcome, or its log, on a stream
// of its own, until release. It is false where the agent does not hold such an
// operation, or is sending its outcome already: then nothing of it need be read.
// The agent may forget an outcome that nobody waits for, but not one that is on its
// way: where its connection breaks it would do the operation once more.
func (v *Visit) Claim(id vedette.OperationID, log bool) (release func(), ok bool) {
	d := v.dispatch
	d.mu.Lock()
	p, held := d.heldLocked(v, id)
	ok = held && !p.claims[v] && (p.logs || !log)
	if ok {
		p.claims[v] = true
	}
	d.mu.Unlock()
	if !ok {
		if !held && !log {
			v.line.Forget(id)
		}
		v.refused(id, p != nil && !held)
		return nil, false
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(p.claims, v)
	}, true
}

// refused counts an outcome that is not taken. One of an operation that has ended is
// late; one of an operation that another agent has is a lie, or a fault.
func (v *Visit) refused(id vedette.OperationID, others bool) {
	d := v.dispatch
	if !others {
		if n, ok := d.late.Allow(); ok {
			d.log.Info("outcome that nobody waits for", "operation", id, "agent", v.member.ID, "count", n)
		}
		return
	}
	if n, ok := d.forged.Allow(); ok {
		d.log.Warn("outcome refused: its agent was not given the operation", "operation", id, "agent", v.member.ID, "count", n)
	}
}

// Forged returns how many outcomes came from agents that had not been given the
// operation.
func (d *Dispatch) Forged() int64 { return d.forged.Total() }
