package dispatch

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/dispatch/lifecycle"
)

// inflight is one operation that is being executed.
type inflight struct {
	op       vedette.Operation
	target   string // a short description of the object, for the history
	object   objectName
	accepted time.Time
	life     *lifecycle.Operation // nil until it is recorded
	known    knownObject
	span     trace.Span // of the trace of the request that caused it
}

// lastDelivery returns the last sending of the operation; nil if there was none.
func (f *inflight) lastDelivery() *lifecycle.Delivery {
	if f.life == nil {
		return nil
	}
	return f.life.LastDelivery()
}

// deliver sends an operation until it has an outcome.
func (d *Dispatcher) deliver(ctx context.Context, f *inflight) vedette.Outcome {
	ctx, cancel := context.WithDeadline(ctx, f.op.Deadline.Add(d.cfg.Grace))
	defer cancel()
	outcome := d.register(f.op)
	defer d.unregister(f.op.ID)
	agentWait := time.NewTimer(min(max(0, time.Until(f.op.Deadline)), d.cfg.AgentWait))
	defer agentWait.Stop()
	f.life = lifecycle.New(f.op, f.accepted)
	var agent *AttachedAgent
	for {
		var detached, changed <-chan struct{}
		if f.life.State() == lifecycle.Sent {
			detached = agent.detached
		} else {
			var event lifecycle.Event
			agent, event, changed = d.agentFor(f.op.Account)
			if out := d.step(ctx, f, agent, event); out != nil {
				return *out
			}
			if f.life.State() == lifecycle.Sent {
				continue
			}
		}
		var unserved <-chan time.Time // if it was sent before, it may have taken effect, and ends with its context
		if f.life.State() == lifecycle.Accepted {
			unserved = agentWait.C
		}
		var event lifecycle.Event
		select {
		case out := <-outcome:
			event = lifecycle.Answered{Outcome: out}
		case <-detached:
			event = lifecycle.Disconnected{}
		case <-changed:
			continue
		case <-unserved:
			event = lifecycle.AgentWaitOver{Mute: d.cacher(f.op.Account)}
		case <-ctx.Done():
			event = lifecycle.Over{Mute: d.cacher(f.op.Account)}
		}
		if out := d.step(ctx, f, agent, event); out != nil {
			return *out
		}
	}
}

// register creates the entry that receives the outcome, from whichever connection it
// arrives.
func (d *Dispatcher) register(op vedette.Operation) <-chan vedette.Outcome {
	p := newPendingOutcome(op)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending[op.ID] = p
	return p.outcome
}

// send sends an operation to an agent, unless its outcome has arrived meanwhile: the
// agent may have forgotten it then and would execute it again.
func (d *Dispatcher) send(a *AttachedAgent, op vedette.Operation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.pending[op.ID]
	if p == nil {
		return
	}
	p.recipients[a.recipient()] = true
	if err := a.stream.Send(op); err != nil {
		delete(d.pending, op.ID)
		p.outcome <- EncodingFailed(op.ID, err) // has room, because nothing else ends a pending operation
	}
}

// EncodingFailed returns the outcome of an operation that the protocol cannot express.
// The agent has not received it.
func EncodingFailed(id vedette.OperationID, err error) vedette.Outcome {
	out := failedOutcome(http.StatusInternalServerError, "InternalError", err.Error())
	if vedette.KindOf(err) == vedette.Invalid {
		out = failedOutcome(http.StatusBadRequest, "BadRequest", err.Error())
	}
	out.ID = id
	return out
}

func (d *Dispatcher) unregister(id vedette.OperationID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pending, id)
}

// step handles an event of an operation, and executes what follows from it. The agent is the one that has the operation, or serves
// its account; it may be nil. step returns the outcome when the operation has one.
func (d *Dispatcher) step(ctx context.Context, f *inflight, agent *AttachedAgent, e lifecycle.Event) *vedette.Outcome {
	for _, effect := range f.life.Step(e, time.Now()) {
		switch effect := effect.(type) {
		case lifecycle.LookUpAccount:
			row, err := d.store.Account(ctx, f.op.Account)
			return d.step(ctx, f, agent, lifecycle.Looked{Cluster: row.Cluster, IsGone: vedette.KindOf(err) == vedette.NotFound})
		case lifecycle.Send:
			d.log.DebugContext(ctx, "sending operation", "operation", f.op.ID, "account", f.op.Account, "verb", verbOf(f.op),
				"origin", f.op.Origin, "agent", agent.member.ID)
			d.send(agent, effect.Operation)
		case lifecycle.Cancel:
			agent.stream.Cancel(f.op.ID)
		case lifecycle.WarnAnotherCluster:
			d.log.WarnContext(ctx, "operation refused: the account has another cluster than when the operation was accepted", "operation", f.op.ID,
				"account", f.op.Account, "agent", effect.Agent, "expected", effect.Expected.String(), "found", effect.Found.String())
		case lifecycle.End:
			return &effect.Outcome
		}
	}
	return nil
}

// agentFor returns the attached agent of an account, nil if there is none, the event that it is, and a channel that is closed when it may
// have changed. An agent that has deregistered the account just now does not serve it anymore:
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

func failedOutcome(status int, reason, message string) vedette.Outcome {
	return lifecycle.Failed(status, reason, message)
}
