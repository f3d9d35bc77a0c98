package dispatch

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/server/dispatch/lifecycle"
)

// RelayRequest asks for the agent of an account, for an operation that another server has accepted.
type RelayRequest struct {
	From      vedette.ServerID
	Operation vedette.OperationID
	Account   vedette.AccountName
	Documents int64       // bytes of its manifest or patch
	Known     vedette.Key // see Wanted
}

// ErrNotHere means that no agent of this server serves an account.
var ErrNotHere = vedette.Errorf(vedette.NotFound, "no agent that is connected to this server serves the account")

// Relay passes one operation of another server to an agent that is connected here. This server decides nothing about it: it says
// which process of which agent has it, writes through what it has changed, and passes the outcome on.
//
// The operation outlives the Relay: its account stays busy here until the agent has answered, or can have no effect any more. So the
// account does not move to another agent while one executes it, although the connection between the servers is lost.
type Relay struct {
	dispatcher *Dispatcher
	request    RelayRequest
	agent      *AttachedAgent
	cluster    vedette.Cluster
	grant      *fair.Grant
	events     chan RelayEvent

	// Set by Send.
	pending *pendingOutcome
	closed  chan struct{}
}

// RelayEvent is an outcome whose objects are written through.
type RelayEvent struct {
	Outcome vedette.Outcome
	// Encoded is the outcome instead, as the agent sends it, if it is large and nothing is written through. Whoever receives it must close
	// it.
	Encoded io.ReadCloser
}

// close closes what nobody reads.
func (e RelayEvent) close() {
	if e.Outcome.Stream != nil {
		_ = e.Outcome.Stream.Close() // nothing was read from it
	}
	if e.Encoded != nil {
		_ = e.Encoded.Close() // nothing was read from it
	}
}

// Relay returns the agent that serves an account here, when there is memory for the operation. It never asks another server, so
// operations do not go in circles. The error is ErrNotHere if no agent serves the account. The caller must close the Relay.
func (d *Dispatcher) Relay(ctx context.Context, r RelayRequest) (*Relay, error) {
	if err := checkNames(vedette.Operation{ID: r.Operation, Account: r.Account}); err != nil {
		return nil, err
	}
	agent, _, _ := d.agentFor(r.Account)
	if agent == nil {
		return nil, ErrNotHere
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.cfg.AgentWait, fair.ErrTimeout)
	defer cancel()
	grant, err := d.budget.Acquire(ctx, string(r.Account), costOfDocuments(max(0, r.Documents)))
	if err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "it has no memory for more operations of the account: %w", err)
	}
	agent, event, _ := d.agentFor(r.Account) // which may be another one after the wait
	served, isServed := event.(lifecycle.Served)
	if !isServed {
		grant.Release()
		return nil, ErrNotHere
	}
	return &Relay{dispatcher: d, request: r, agent: agent, cluster: served.Cluster, grant: grant, events: make(chan RelayEvent, 1),
		closed: make(chan struct{})}, nil
}

// Agent returns the agent that serves the account.
func (r *Relay) Agent() lifecycle.Agent { return r.agent.describe() }

// Cluster returns the cluster that the agent has registered.
func (r *Relay) Cluster() vedette.Cluster { return r.cluster }

// Gone is closed when the agent has disconnected.
func (r *Relay) Gone() <-chan struct{} { return r.agent.detached }

// Events returns the outcome after Send. It is closed if the agent disconnects before, or does not answer in time.
func (r *Relay) Events() <-chan RelayEvent { return r.events }

// Send sends the operation to the agent. If it fails, the agent has not received it. It must be called once at most.
func (r *Relay) Send(op vedette.Operation) error {
	d := r.dispatcher
	switch {
	case op.ID != r.request.Operation || op.Account != r.request.Account:
		return vedette.Errorf(vedette.Invalid, "the operation is not the one that was announced")
	case op.Args == nil:
		return vedette.Errorf(vedette.Invalid, "this server is too old for the verb of the operation: upgrade it")
	case documentsOf(op.Args) > max(0, r.request.Documents):
		return vedette.Errorf(vedette.Invalid, "the operation is larger than was announced")
	case op.Deadline.IsZero() || !time.Now().Before(op.Deadline): // it was on its way for too long, or this server stood still
		return vedette.Errorf(vedette.Unavailable, "the deadline of the operation had passed when it arrived")
	}
	if err := checkNames(op); err != nil {
		return err
	}
	if agent, event, _ := d.agentFor(op.Account); agent != r.agent || event.(lifecycle.Served).Cluster != r.cluster {
		return ErrNotHere
	}
	f := &inflight{op: op, accepted: time.Now()}
	if a, deletes := op.Args.(vedette.DeleteArgs); deletes && a.KnownUID != "" {
		f.known = knownObject{key: r.request.Known, uid: a.KnownUID}
	}
	if err := r.register(op, op.Reads() && !f.needsWriteThrough()); err != nil {
		return err
	}
	grant := r.grant
	r.grant = nil
	endPriority := d.prioritize(f)
	d.running.Go(func() {
		defer grant.Release()
		defer endPriority()
		r.run(f)
	})
	d.send(r.agent, r.pending, op)
	return nil
}

// register makes the relay receive the outcome. The same server may ask again for the same operation, because it has lost its
// connection: the earlier relay ends then, and what its recipients answer counts.
func (r *Relay) register(op vedette.Operation, isPassedOn bool) error {
	d := r.dispatcher
	p := newPendingOutcome(op)
	p.relay = r
	p.isPassedOn = isPassedOn
	d.mu.Lock()
	defer d.mu.Unlock()
	if earlier := d.pending[op.ID]; earlier != nil {
		if earlier.relay == nil || earlier.relay.request.From != r.request.From || earlier.account != op.Account {
			return vedette.Errorf(vedette.Conflict, "an operation with this id is under way here for another server")
		}
		p.recipients = earlier.recipients
		close(earlier.superseded)
	}
	d.pending[op.ID] = p
	r.pending = p
	return nil
}

// run waits for the outcome, until the operation can have no effect any more.
func (r *Relay) run(f *inflight) {
	d, p := r.dispatcher, r.pending
	defer d.unregister(f.op.ID, p)
	timeout := time.NewTimer(time.Until(f.op.Deadline.Add(d.cfg.Grace)))
	defer timeout.Stop()
	isTold := false // that the agent is gone
	defer func() {
		if !isTold {
			close(r.events)
		}
	}()
	gone, closed := r.agent.detached, r.closed
	for {
		select {
		case out := <-p.outcome:
			r.write(f, &out)
			r.deliver(RelayEvent{Outcome: out}, isTold)
			return
		case out := <-p.encoded:
			r.deliver(RelayEvent{Encoded: out}, isTold)
			return
		case <-gone:
			gone = nil
			isTold = true
			close(r.events) // the other server asks again, for where the agent is then
		case <-d.changesCtx.Done():
			return
		case <-closed:
			closed = nil
			if f.op.Reads() {
				r.agent.cancel(f.op.ID)
				return
			}
		case <-p.superseded:
			return
		case <-timeout.C:
			return
		}
	}
}

// write writes an outcome through.
func (r *Relay) write(f *inflight, out *vedette.Outcome) {
	out.ID = f.op.ID
	ctx := requestid.With(context.Background(), f.op.RequestID)
	if _, isReadable := r.dispatcher.writeThrough(ctx, f, out, nil); !isReadable {
		out.DropCacheObject() // the other server waits for it
	}
}

// deliver passes an outcome on, unless the other server has been told that none comes.
func (r *Relay) deliver(e RelayEvent, isTold bool) {
	if isTold {
		e.close()
		return
	}
	r.events <- e // has room
	select {
	case <-r.closed:
		r.discard()
	default:
	}
}

// discard closes an outcome that nobody reads.
func (r *Relay) discard() {
	select {
	case e, ok := <-r.events:
		if ok {
			e.close()
		}
	default:
	}
}

// Cancel tells the agent that nobody waits for the operation.
func (r *Relay) Cancel() {
	if r.pending != nil {
		r.agent.cancel(r.request.Operation)
	}
}

// Acknowledge tells the agent that the other server has the outcome.
func (r *Relay) Acknowledge() { r.agent.stream.Forget(r.request.Operation) }

// Close ends the relay. The agent keeps an outcome that was not acknowledged. A read is cancelled.
func (r *Relay) Close() {
	close(r.closed)
	r.grant.Release()
	r.discard()
}

// IsNotHere reports whether an error of Relay or Send says that no agent of this server serves the account.
func IsNotHere(err error) bool { return errors.Is(err, ErrNotHere) }
