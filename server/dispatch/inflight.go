package dispatch

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/vedette-io/vedette"
)

// inflight is one operation that is being executed.
type inflight struct {
	op           vedette.Operation
	target       string // a short description of the object, for the history
	accepted     time.Time
	lastDelivery *delivery // nil before the first
	prevDelivery *delivery // the last one to another process than lastDelivery; nil if there is none
	known        knownObject
	span         trace.Span // of the trace of the request that caused it
}

// delivery is one sending of an operation to an agent's process.
type delivery struct {
	agent   vedette.AgentID
	process string
	sentAt  time.Time
}

// canSendTo reports whether the operation may be sent to a process. The process that
// already has it answers from memory. Another process may execute it a second time, so
// the operation must be idempotent.
func (f *inflight) canSendTo(process string) bool {
	return f.lastDelivery == nil || f.lastDelivery.process == process || f.op.Idempotent()
}

// prepareResend adapts a deletion for another process than the one that has it. The
// first process may have deleted the object already, so it may be missing, and a new
// object with the same name must stay.
func (f *inflight) prepareResend(process string) {
	if f.lastDelivery == nil || f.lastDelivery.process == process {
		return
	}
	f.prevDelivery = f.lastDelivery
	if a, ok := f.op.Args.(vedette.DeleteArgs); ok && f.op.Changes() {
		a.MissingOK, a.OnlyKnown = true, a.KnownUID != ""
		f.op.Args = a
	}
}

// interpret returns the outcome for the caller. A failure after two processes had the
// operation is lost, because the failure of one says nothing about what the other did.
func (f *inflight) interpret(out vedette.Outcome) vedette.Outcome {
	if f.op.Reads() && out.State != vedette.Done {
		out.State, out.Objects = vedette.Failed, nil // nothing can have taken effect, and a part of a list is worth nothing
	}
	if out.State != vedette.Failed || f.prevDelivery == nil || !f.op.Changes() {
		return f.explainUnsupported(out)
	}
	return vedette.Outcome{State: vedette.Lost, Status: http.StatusGatewayTimeout, Reason: "Lost", Warnings: out.Warnings,
		Message: fmt.Sprintf("it is unknown whether this took effect: it was sent to agent %s at %s, which disconnected before it answered, and then to agent %s, where it failed: %s. "+
			"Look at the object before you try again", f.prevDelivery.agent, f.prevDelivery.sentAt.UTC().Format(time.RFC3339), f.lastDelivery.agent,
			out.Message)}
}

// explainUnsupported adds to an agent's rejection which feature the agent does not
// know.
func (f *inflight) explainUnsupported(out vedette.Outcome) vedette.Outcome {
	if out.State != vedette.Failed || out.Reason != vedette.ReasonUnknownToAgent || f.lastDelivery == nil {
		return out
	}
	feature := fmt.Sprintf("the verb %s in this form", f.op.Args.Verb())
	if f.op.DryRun {
		feature = "dry runs"
	}
	out.Status, out.Reason = http.StatusNotImplemented, "NotImplemented"
	out.Message = fmt.Sprintf("agent %s is too old for %s and did nothing: upgrade it", f.lastDelivery.agent, feature)
	return out
}

// deliver sends an operation until it has an outcome.
func (d *Dispatcher) deliver(ctx context.Context, f *inflight) vedette.Outcome {
	ctx, cancel := context.WithDeadline(ctx, f.op.Deadline.Add(d.cfg.Grace))
	defer cancel()
	outcome := d.register(f.op)
	defer d.unregister(f.op.ID)
	for {
		agent, cluster, out := d.awaitAgent(ctx, f, outcome)
		if agent == nil {
			return f.interpret(out)
		}
		if !time.Now().Before(f.op.Deadline) { // this server stood still
			return d.timedOutOutcome(f)
		}
		if !f.isFor(cluster) {
			return d.anotherClusterOutcome(f, agent, cluster)
		}
		f.prepareResend(agent.process)
		f.lastDelivery = &delivery{agent.member.ID, agent.process, time.Now()}
		d.log.DebugContext(ctx, "sending operation", "operation", f.op.ID, "account", f.op.Account, "verb", verbOf(f.op),
			"origin", f.op.Origin, "agent", agent.member.ID)
		op := f.op
		op.Cluster = cluster // what the agent itself registered: what others did may be secret
		d.send(agent, op)
		select {
		case out := <-outcome:
			return f.interpret(out)
		case <-agent.detached:
		case <-ctx.Done():
			agent.stream.Cancel(f.op.ID)
			return d.timedOutOutcome(f)
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

// awaitAgent waits for an agent to which the operation may be sent, and returns it with the
// cluster that it registered. If there is none in time, or the wrong one, it returns an outcome
// instead: one that arrived after all, or the reason.
func (d *Dispatcher) awaitAgent(ctx context.Context, f *inflight, outcome <-chan vedette.Outcome) (*AttachedAgent, vedette.Cluster,
	vedette.Outcome) {
	unserved, stop := d.agentTimeout(f)
	defer stop()
	for accountChecked := false; ; {
		agent, cluster, changed := d.agentFor(f.op.Account)
		if agent != nil && f.canSendTo(agent.process) {
			return agent, cluster, vedette.Outcome{}
		}
		if agent != nil {
			return nil, cluster, d.abandonedOutcome(f, agent)
		}
		if !accountChecked && f.lastDelivery == nil {
			accountChecked = true
			row, err := d.store.Account(ctx, f.op.Account)
			f.acceptFor(row.Cluster) // empty after an error
			if vedette.KindOf(err) == vedette.NotFound {
				return nil, cluster, failedOutcome(http.StatusNotFound, "NotFound",
					"there is no account "+string(f.op.Account)+": no agent has registered it")
			}
		}
		select {
		case out := <-outcome:
			return nil, cluster, out
		case <-changed:
		case <-unserved:
			return nil, cluster, d.unservedOutcome(f)
		case <-ctx.Done():
			return nil, cluster, d.timedOutOutcome(f)
		}
	}
}

// agentTimeout returns a channel that receives when no agent has come for the operation. If the operation was sent before,
// it may have taken effect, and the channel never receives: the operation ends with its context.
func (d *Dispatcher) agentTimeout(f *inflight) (unserved <-chan time.Time, stop func() bool) {
	if f.lastDelivery != nil {
		return nil, func() bool { return false }
	}
	timer := time.NewTimer(min(max(0, time.Until(f.op.Deadline)), d.cfg.AgentWait))
	return timer.C, timer.Stop
}

// agentFor returns the attached agent of an account and the cluster that it registered, or nil and a
// channel to wait for. An agent that has deregistered the account just now does not serve it anymore:
// without a cluster, it would execute the operation in the next one that it reaches.
func (d *Dispatcher) agentFor(account vedette.AccountName) (*AttachedAgent, vedette.Cluster, <-chan struct{}) {
	changed := d.nextChange() // before Cacher, so that no change is missed
	member, _ := d.assignments.Cacher(account)
	if member == nil {
		return nil, vedette.Cluster{}, changed
	}
	cluster := d.assignments.Registered(member, account)
	if cluster == (vedette.Cluster{}) {
		return nil, cluster, changed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.attached[member], cluster, changed
}

func failedOutcome(status int, reason, message string) vedette.Outcome {
	return vedette.Outcome{State: vedette.Failed, Status: status, Reason: reason, Message: message}
}

// unservedOutcome is the outcome if no agent took the operation.
func (d *Dispatcher) unservedOutcome(f *inflight) vedette.Outcome {
	message := fmt.Sprintf("no agent serves account %s: none has connected within %v, and nothing was done. `vedette agents` shows the connected agents, "+
		"and why an agent does not serve an account", f.op.Account, time.Since(f.accepted).Round(time.Second))
	if member, _ := d.assignments.Cacher(f.op.Account); member != nil {
		message = fmt.Sprintf("agent %s (version %s), which serves account %s, does not accept operations: upgrade it", member.ID, member.Version,
			f.op.Account)
	}
	return failedOutcome(http.StatusServiceUnavailable, "ServiceUnavailable", message)
}

// abandonedOutcome is the outcome if the process that had the operation is gone, and
// the operation must not be sent to another.
func (d *Dispatcher) abandonedOutcome(f *inflight, current *AttachedAgent) vedette.Outcome {
	explanation := "restarted before it answered and cannot know"
	if current.member.ID != f.lastDelivery.agent {
		explanation = fmt.Sprintf("disconnected, and agent %s, which serves the account now, cannot know", current.member.ID)
	}
	return lostOutcome(f, explanation+"; sending it again could execute it twice")
}

// timedOutOutcome is the outcome after the deadline, or if the caller has left or the
// server stops.
func (d *Dispatcher) timedOutOutcome(f *inflight) vedette.Outcome {
	if time.Now().Before(f.op.Deadline) {
		if f.op.Reads() {
			return failedOutcome(http.StatusGatewayTimeout, "Canceled", "the caller has left")
		}
		if f.lastDelivery == nil || f.op.DryRun {
			return failedOutcome(http.StatusServiceUnavailable, "ServiceUnavailable", "the server is stopping; nothing was done")
		}
		return lostOutcome(f, "has not answered, and the server is stopping")
	}
	if f.lastDelivery == nil {
		return d.unservedOutcome(f)
	}
	if !f.op.Changes() {
		return failedOutcome(http.StatusGatewayTimeout, "Timeout", fmt.Sprintf("agent %s did not answer by the deadline, %v after it was asked",
			f.lastDelivery.agent, f.op.Deadline.Sub(f.lastDelivery.sentAt).Round(time.Second)))
	}
	return lostOutcome(f, "did not answer by the deadline")
}

// lostOutcome is the outcome of an operation that may have taken effect. It says what
// is known.
func lostOutcome(f *inflight, explanation string) vedette.Outcome {
	return vedette.Outcome{State: vedette.Lost, Status: http.StatusGatewayTimeout, Reason: "Lost",
		Message: fmt.Sprintf("it is unknown whether this took effect: it was sent to agent %s at %s, which %s. Look at the object before you try again",
			f.lastDelivery.agent, f.lastDelivery.sentAt.UTC().Format(time.RFC3339), explanation)}
}
