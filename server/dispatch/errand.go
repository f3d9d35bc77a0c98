package dispatch

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
)

// errand is one operation on its way.
type errand struct {
	op       vedette.Operation
	target   string // what it is about, in short: for the history
	accepted time.Time
	sent     *sending // the last; nil before the first
	before   *sending // to another process than the last; nil where there is none
	known    known
}

// sending is an operation in the hands of an agent's process.
type sending struct {
	agent   vedette.AgentID
	process string
	at      time.Time
}

// mayGo decides whether an operation may be sent to a process: to the one that
// has it, which answers from memory, always; to another one only where it can't
// do harm.
func (e *errand) mayGo(process string) bool {
	return e.sent == nil || e.sent.process == process || e.op.Idempotent()
}

// handOver prepares an operation for a process that does not have it: what another
// one may have deleted already need not be there, and what took its name since is
// not what was meant.
func (e *errand) handOver(process string) {
	if e.sent == nil || e.sent.process == process {
		return
	}
	e.before = e.sent
	if a, ok := e.op.Args.(vedette.DeleteArgs); ok && e.op.Changes() {
		a.MissingOK, a.OnlyKnown = true, a.KnownUID != ""
		e.op.Args = a
	}
}

// weigh takes an outcome as it comes, but for a failure of what two processes had:
// what one of them says doesn't tell what the other did.
func (e *errand) weigh(out vedette.Outcome) vedette.Outcome {
	if out.State != vedette.Failed || e.before == nil || !e.op.Changes() {
		return e.explain(out)
	}
	return vedette.Outcome{State: vedette.Lost, Status: http.StatusGatewayTimeout, Reason: "Lost", Warnings: out.Warnings,
		Message: fmt.Sprintf("it is unknown whether this took effect: it was sent to agent %s at %s, which went away before it answered, and then to agent %s, where it failed: %s. "+
			"Look at the object before you try again", e.before.agent, e.before.at.UTC().Format(time.RFC3339), e.sent.agent, out.Message)}
}

// explain says of an agent's refusal to do what it does not know what it is that it
// does not know.
func (e *errand) explain(out vedette.Outcome) vedette.Outcome {
	if out.State != vedette.Failed || out.Reason != vedette.ReasonUnknownToAgent || e.sent == nil {
		return out
	}
	what := fmt.Sprintf("the verb %s in this form", e.op.Args.Verb())
	if e.op.DryRun {
		what = "dry runs"
	}
	out.Status, out.Reason = http.StatusNotImplemented, "NotImplemented"
	out.Message = fmt.Sprintf("agent %s is too old to know %s, and did nothing: upgrade it", e.sent.agent, what)
	return out
}

// carry brings an operation to its outcome.
func (d *Dispatch) carry(ctx context.Context, e *errand) vedette.Outcome {
	ctx, cancel := context.WithDeadline(ctx, e.op.Deadline.Add(d.cfg.Grace))
	defer cancel()
	outcome := d.await(e.op)
	defer d.forgo(e.op.ID)
	for {
		visit, out := d.visitFor(ctx, e, outcome)
		if visit == nil {
			return e.weigh(out)
		}
		e.handOver(visit.process)
		e.sent = &sending{visit.member.ID, visit.process, time.Now()}
		d.send(visit, e.op)
		select {
		case out := <-outcome:
			return e.weigh(out)
		case <-visit.left:
		case <-ctx.Done():
			visit.line.Cancel(e.op.ID)
			return d.overdue(ctx, e)
		}
	}
}

// await makes the place where an outcome is put, from whichever connection it
// comes.
func (d *Dispatch) await(op vedette.Operation) <-chan vedette.Outcome {
	p := newPending(op)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[op.ID] = p
	return p.outcome
}

// send gives an operation to an agent, unless its outcome has come meanwhile: the
// agent may have forgotten it then, and would begin anew.
func (d *Dispatch) send(v *Visit, op vedette.Operation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.waiting[op.ID]; p != nil {
		p.holders[v.holder()] = true
		v.line.Send(op)
	}
}

func (d *Dispatch) forgo(id vedette.OperationID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, id)
}

// visitFor waits for an agent that the operation may be sent to. Where none comes
// in time, or the wrong one, it returns the outcome instead: one that arrived after
// all, or why there is none.
func (d *Dispatch) visitFor(ctx context.Context, e *errand, outcome <-chan vedette.Outcome) (*Visit, vedette.Outcome) {
	patience := time.NewTimer(d.patienceFor(e))
	defer patience.Stop()
	for asked := false; ; {
		visit, news := d.visitOf(e.op.Account)
		if visit != nil && e.mayGo(visit.process) {
			return visit, vedette.Outcome{}
		}
		if visit != nil {
			return nil, d.abandoned(e, visit)
		}
		if !asked && e.sent == nil {
			asked = true
			if _, err := d.book.Account(ctx, e.op.Account); vedette.KindOf(err) == vedette.NotFound {
				return nil, failure(http.StatusNotFound, "NotFound", "there is no account "+string(e.op.Account)+": no agent has registered one of that name")
			}
		}
		select {
		case out := <-outcome:
			return nil, out
		case <-news:
		case <-patience.C:
			return nil, d.unserved(e)
		case <-ctx.Done():
			return nil, d.overdue(ctx, e)
		}
	}
}

// patienceFor is how long to wait for an agent: for one that has the operation,
// until the deadline and its grace are over, which the context tells.
func (d *Dispatch) patienceFor(e *errand) time.Duration {
	left := max(0, time.Until(e.op.Deadline))
	if e.sent != nil {
		return left + 2*d.cfg.Grace
	}
	return min(left, d.cfg.Patience)
}

// visitOf returns the visit of the account's agent, or nil and what to wait for.
func (d *Dispatch) visitOf(account vedette.AccountName) (*Visit, <-chan struct{}) {
	news := d.latest() // before the roster is asked, so that no news is missed
	member, _ := d.seats.Holder(account)
	if member == nil {
		return nil, news
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.visits[member], news
}

func failure(status int, reason, message string) vedette.Outcome {
	return vedette.Outcome{State: vedette.Failed, Status: status, Reason: reason, Message: message}
}

// unserved says that no agent came to take the operation.
func (d *Dispatch) unserved(e *errand) vedette.Outcome {
	message := fmt.Sprintf("no agent serves account %s: none has connected within %v, and nothing was done. `vedette agents` shows which agents are connected, "+
		"and what keeps them from an account", e.op.Account, time.Since(e.accepted).Round(time.Second))
	if member, _ := d.seats.Holder(e.op.Account); member != nil {
		message = fmt.Sprintf("agent %s (version %s), which serves account %s, takes no operations; upgrade it", member.ID, member.Version, e.op.Account)
	}
	return failure(http.StatusServiceUnavailable, "ServiceUnavailable", message)
}

// abandoned says that the process that had the operation is gone, and that another
// one must not be given it.
func (d *Dispatch) abandoned(e *errand, now *Visit) vedette.Outcome {
	who := "ended before it answered and has been started anew, and can't know"
	if now.member.ID != e.sent.agent {
		who = fmt.Sprintf("is gone, and agent %s, which serves the account now, can't know", now.member.ID)
	}
	return lost(e, who+"; to send it again could do it twice")
}

// overdue says that the time is up, or the caller or the server gone.
func (d *Dispatch) overdue(ctx context.Context, e *errand) vedette.Outcome {
	if time.Now().Before(e.op.Deadline) {
		if e.op.Reads() {
			return failure(http.StatusGatewayTimeout, "Canceled", "nobody waits for the answer any more")
		}
		if e.sent == nil || e.op.DryRun {
			return failure(http.StatusServiceUnavailable, "ServiceUnavailable", "the server is going away; nothing was done")
		}
		return lost(e, "has not answered, and the server is going away")
	}
	if e.sent == nil {
		return d.unserved(e)
	}
	if !e.op.Changes() {
		return failure(http.StatusGatewayTimeout, "Timeout", fmt.Sprintf("agent %s did not answer by the deadline, %v after it was asked",
			e.sent.agent, e.op.Deadline.Sub(e.sent.at).Round(time.Second)))
	}
	return lost(e, "did not answer by the deadline")
}

// lost says what is known of an operation that may have taken effect.
func lost(e *errand, what string) vedette.Outcome {
	return vedette.Outcome{State: vedette.Lost, Status: http.StatusGatewayTimeout, Reason: "Lost",
		Message: fmt.Sprintf("it is unknown whether this took effect: it was sent to agent %s at %s, which %s. Look at the object before you try again",
			e.sent.agent, e.sent.at.UTC().Format(time.RFC3339), what)}
}
