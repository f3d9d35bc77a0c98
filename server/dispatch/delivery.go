package dispatch

import (
	"context"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/dispatch/lifecycle"
)

// delivery sends one operation until it has an outcome. It is the shell of a lifecycle.Operation.
type delivery struct {
	*inflight
	dispatcher *Dispatcher
	pending    *pendingOutcome
	agent      servingAgent // that has the operation; nil if none has
	remote     remoteSearch
}

// deliver sends an operation until it has an outcome.
func (d *Dispatcher) deliver(ctx context.Context, f *inflight) vedette.Outcome {
	ctx, cancel := context.WithDeadline(ctx, f.op.Deadline.Add(d.cfg.Grace))
	defer cancel()
	if f.life == nil {
		f.life = lifecycle.New(f.op, f.accepted)
	}
	v := &delivery{inflight: f, dispatcher: d, pending: d.register(f.op)}
	defer d.unregister(f.op.ID, v.pending)
	defer v.leave()
	agentWait := time.NewTimer(min(max(0, time.Until(f.op.Deadline)), d.cfg.AgentWait))
	defer agentWait.Stop()
	for {
		var out *vedette.Outcome
		if f.life.State() == lifecycle.Sent {
			out = v.awaitAnswer(ctx)
		} else {
			out = v.awaitAgent(ctx, agentWait.C)
		}
		if out != nil {
			return *out
		}
	}
}

// awaitAnswer waits for the next event of an operation that an agent has.
func (v *delivery) awaitAnswer(ctx context.Context) *vedette.Outcome {
	select {
	case out := <-v.pending.outcome:
		return v.step(ctx, lifecycle.Answered{Outcome: out})
	case out := <-v.pending.forwarded:
		return v.handleRemote(ctx, RemoteEvent{Outcome: out}, true)
	case e, ok := <-v.agent.events():
		return v.handleRemote(ctx, e, ok)
	case <-v.agent.gone():
		return v.step(ctx, lifecycle.Disconnected{})
	case <-ctx.Done():
		return v.step(ctx, v.over())
	}
}

// handleRemote handles what another server says, or that it says nothing more.
func (v *delivery) handleRemote(ctx context.Context, e RemoteEvent, ok bool) *vedette.Outcome {
	switch {
	case ok && !e.Returned:
		v.isRelayed = true
		return v.step(ctx, lifecycle.Answered{Outcome: e.Outcome})
	case ok:
		v.leave()
		return v.step(ctx, lifecycle.Returned{})
	}
	v.leave()
	return v.step(ctx, lifecycle.Disconnected{})
}

// awaitAgent gives the operation to the agent that serves its account, or waits for the next event. An agent of this server
// comes first: nothing is asked over the network if the operation need not leave it.
func (v *delivery) awaitAgent(ctx context.Context, agentWait <-chan time.Time) *vedette.Outcome {
	agent, event, changed := v.dispatcher.agentFor(v.op.Account)
	if agent != nil {
		v.remote.stop()
		if out, mayAct := v.awaitLease(ctx); !mayAct {
			return out
		}
		v.setAgent(agent)
		return v.step(ctx, event)
	}
	found := v.remote.run(ctx, v.dispatcher.remote, v.inflight)
	if v.remote.missed {
		if out := v.step(ctx, event); out != nil {
			return out
		}
	}
	if v.life.State() != lifecycle.Accepted {
		agentWait = nil // it may have taken effect, and ends with its context
	}
	select {
	case out := <-v.pending.outcome:
		return v.step(ctx, lifecycle.Answered{Outcome: out})
	case out := <-v.pending.forwarded:
		return v.handleRemote(ctx, RemoteEvent{Outcome: out}, true)
	case a := <-found:
		v.remote.stop()
		v.remote.attempts++
		if out, mayAct := v.awaitLease(ctx); !mayAct {
			a.Close()
			return out
		}
		v.setAgent(remoteAgent{a})
		return v.step(ctx, lifecycle.Served{Agent: a.Agent(), Cluster: a.Cluster()})
	case <-v.remote.missing():
		v.remote.missed = true
	case <-changed:
	case <-agentWait:
		return v.step(ctx, lifecycle.AgentWaitOver{Obstacle: v.obstacle()})
	case <-ctx.Done():
		return v.step(ctx, v.over())
	}
	return nil
}

// leaseRetry is the time between two looks whether this server still has its lease, while the database does not answer.
const leaseRetry = 200 * time.Millisecond

// awaitLease reports whether a change may be sent now. A server that stood still looks first whether it still has its lease: another one
// may go on with what it has begun. If that was not certain, the caller must look for the agent again; the outcome is not nil if the
// operation has ended.
func (v *delivery) awaitLease(ctx context.Context) (out *vedette.Outcome, mayAct bool) {
	d := v.dispatcher
	if d.lease == nil || !v.op.Changes() {
		return nil, true
	}
	err := d.lease(ctx)
	if err == nil {
		return nil, true
	}
	d.log.WarnContext(ctx, "operation waits: it is not certain that this server still has its lease", "operation", v.op.ID, "error", err)
	timer := time.NewTimer(leaseRetry)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil, false
	case <-ctx.Done():
		return v.step(ctx, v.over()), false
	}
}

func (v *delivery) over() lifecycle.Over { return lifecycle.Over{Obstacle: v.obstacle()} }

func (v *delivery) obstacle() lifecycle.Obstacle {
	return lifecycle.Obstacle{Mute: v.dispatcher.cacher(v.op.Account), Server: v.remote.obstacle()}
}

// setAgent replaces the agent that has the operation.
func (v *delivery) setAgent(a servingAgent) {
	v.closeAgent()
	v.agent = a
	v.dispatcher.mu.Lock()
	defer v.dispatcher.mu.Unlock()
	v.pending.serving, v.pending.isSent = a, false
}

func (v *delivery) closeAgent() {
	if v.agent != nil {
		v.agent.close()
		v.agent = nil
	}
}

// leave closes what reaches other servers.
func (v *delivery) leave() {
	v.remote.stop()
	v.setAgent(nil)
}

// step handles an event of the operation, and executes what follows from it. It returns the outcome when the operation has one.
func (v *delivery) step(ctx context.Context, e lifecycle.Event) *vedette.Outcome {
	d, op := v.dispatcher, v.op
	for _, effect := range v.life.Step(e, time.Now()) {
		switch effect := effect.(type) {
		case lifecycle.LookUpAccount:
			row, err := d.store.Account(ctx, op.Account)
			return v.step(ctx, lifecycle.Looked{Cluster: row.Cluster, IsGone: vedette.KindOf(err) == vedette.NotFound})
		case lifecycle.Send:
			d.log.DebugContext(ctx, "sending operation", "operation", op.ID, "account", op.Account, "verb", verbOf(op),
				"origin", op.Origin, "agent", v.agent.describe().ID)
			d.send(v.agent, v.pending, effect.Operation)
		case lifecycle.Cancel:
			v.agent.cancel(op.ID)
		case lifecycle.WarnAnotherCluster:
			d.log.WarnContext(ctx, "operation refused: the account has another cluster than when the operation was accepted", "operation", op.ID,
				"account", op.Account, "agent", effect.Agent, "expected", effect.Expected.String(), "found", effect.Found.String())
		case lifecycle.End:
			return &effect.Outcome
		}
	}
	return nil
}

// send sends an operation to an agent, unless its outcome has arrived meanwhile: the
// agent may have forgotten it then and would execute it again.
func (d *Dispatcher) send(a servingAgent, p *pendingOutcome, op vedette.Operation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending[op.ID] != p {
		return
	}
	if r := a.recipient(); r != (recipient{}) {
		p.recipients[r] = true
	}
	p.isSent = true
	if err := a.send(op); err != nil {
		delete(d.pending, op.ID)
		p.outcome <- EncodingFailed(op.ID, err) // has room, because nothing else ends a pending operation
	}
}

// register creates the entry that receives the outcome, from whichever connection it
// arrives.
func (d *Dispatcher) register(op vedette.Operation) *pendingOutcome {
	p := newPendingOutcome(op)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending[op.ID] = p
	return p
}

func (d *Dispatcher) unregister(id vedette.OperationID, p *pendingOutcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending[id] == p {
		delete(d.pending, id)
	}
}

// agentFor returns the agent of an account that is attached here, nil if there is none, the event that it is, and a channel that is closed
// when it may have changed. An agent that has deregistered the account just now does not serve it anymore:
// without a cluster, it would execute the operation in the next one that it reaches.
func (d *Dispatcher) agentFor(account vedette.AccountName) (*AttachedAgent, lifecycle.Event, <-chan struct{}) {
	changed := d.nextChange() // before Cacher, so that no change is missed
	member, _ := d.assignments.Cacher(account)
	if member == nil {
		return nil, lifecycle.Unserved{}, changed
	}
	cluster := d.assignments.Registered(member, account)
	d.mu.Lock()
	agent := d.attached[member]
	d.mu.Unlock()
	if agent == nil || cluster == (vedette.Cluster{}) {
		return nil, lifecycle.Unserved{}, changed
	}
	return agent, lifecycle.Served{Agent: agent.describe(), Cluster: cluster}, changed
}

// cacher returns the agent that serves an account, whether it accepts operations or not; zero if there is none.
func (d *Dispatcher) cacher(account vedette.AccountName) lifecycle.Agent {
	member, _ := d.assignments.Cacher(account)
	if member == nil {
		return lifecycle.Agent{}
	}
	return lifecycle.Agent{ID: member.ID, Version: member.Version}
}
