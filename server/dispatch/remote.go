package dispatch

import (
	"context"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/dispatch/lifecycle"
)

// Remote reaches agents that are connected to other servers, and operations that other servers have accepted.
type Remote interface {
	// Find looks for the agent that serves an account until it has found one, or ctx ends. It does not wait.
	Find(ctx context.Context, wanted Wanted) Search
	// AwaitEnd waits until an operation that another server has accepted has ended. It returns an error if that server cannot be asked,
	// or does not know the operation.
	AwaitEnd(ctx context.Context, server vedette.ServerID, id vedette.OperationID) error
}

// Wanted is an operation for which an agent is wanted.
type Wanted struct {
	Operation vedette.OperationID
	Account   vedette.AccountName
	// Documents are the bytes of the manifest or patch, for which the other server must have memory.
	Documents int64
	// Known is the object that a deletion names, as it is stored; zero if it is not known.
	Known vedette.Key
	// Attempts is how many agents were found for the operation before, and lost. The more, the longer a search waits before it begins.
	Attempts int
}

// Search looks for an agent.
type Search interface {
	// Found returns the agent. Who receives it must close it.
	Found() <-chan RemoteAgent
	// Missed is closed when the agent was not found at once.
	Missed() <-chan struct{}
	// Obstacle returns why the agent is not found, as a sentence without its full stop; empty if no other server seems to have it.
	Obstacle() string
}

// RemoteAgent is an agent that is connected to another server, for one operation. Its methods do not wait.
type RemoteAgent interface {
	Agent() lifecycle.Agent
	// Server returns the server that the agent is connected to.
	Server() vedette.ServerID
	Cluster() vedette.Cluster
	// Send sends the operation, once. It fails if the protocol cannot express it.
	Send(op vedette.Operation) error
	// Cancel tells the agent that nobody waits for the operation.
	Cancel()
	// Events returns what comes of the operation: one event, or none. It is closed when no other follows, because the
	// agent or the connection is gone. A Stream that was received goes on after Close, until it is closed itself.
	Events() <-chan RemoteEvent
	Close()
}

// RemoteEvent is an outcome that the other server has written through, or says that the agent has not received the operation.
type RemoteEvent struct {
	Outcome  vedette.Outcome
	Returned bool
}

// SetRemote makes other servers' agents available. It must be called before Run and the first operation. Without it, each account is served
// here or by nobody.
func (d *Dispatcher) SetRemote(r Remote) { d.remote = r }

// SetKnown sets what waits until other servers know what this one has written before the call. It must be called like SetRemote.
func (d *Dispatcher) SetKnown(known func(context.Context) error) { d.known = known }

// SetLease sets what fails unless this server still has its lease of the database. It must be called like SetRemote.
func (d *Dispatcher) SetLease(check func(context.Context) error) { d.lease = check }

// AwaitEnd waits until an operation that a server has accepted has ended. It returns an error if that cannot be known.
func (d *Dispatcher) AwaitEnd(ctx context.Context, server vedette.ServerID, id vedette.OperationID) error {
	if server == d.cfg.Server {
		return d.Ended(ctx, id)
	}
	if d.remote == nil {
		return vedette.Errorf(vedette.Unavailable, "operation %s was accepted by server %s, which cannot be asked", id, server)
	}
	return d.remote.AwaitEnd(ctx, server, id)
}

// Ended waits until an operation that this server has accepted, and that changes something, has ended and is recorded. It returns
// vedette.NotFound if no such operation is under way.
func (d *Dispatcher) Ended(ctx context.Context, id vedette.OperationID) error {
	d.mu.Lock()
	ended := d.accepted[id]
	d.mu.Unlock()
	if ended == nil {
		return vedette.Errorf(vedette.NotFound, "operation %.60q is not under way at this server", string(id))
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// accept notes that a recorded operation is under way, until end is called.
func (d *Dispatcher) accept(id vedette.OperationID) (end func()) {
	ended := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.accepted[id] = ended
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.accepted, id)
		close(ended)
	}
}

// HandleForwarded takes an outcome that another server sends by itself, and has written through. It counts for an operation that this
// server has accepted, and has given to an agent that is connected to that server; or to nobody, if the account's row says that its
// agent is connected there. Only the first outcome of an operation counts.
func (d *Dispatcher) HandleForwarded(ctx context.Context, from vedette.ServerID, out vedette.Outcome) error {
	account, serving, err := d.waiting(out.ID)
	if err != nil {
		return err
	}
	server := vedette.ServerID("")
	if agent, isRemote := serving.(remoteAgent); isRemote {
		server = agent.Server()
	} else if serving == nil {
		row, err := d.store.Account(ctx, account)
		if err != nil {
			return err
		}
		server = row.Server
	}
	if server != from || from == d.cfg.Server {
		return vedette.Errorf(vedette.Conflict, "operation %.60q is of an account whose agent is not connected to server %.253q", string(out.ID), string(from))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.pending[out.ID]
	if p == nil || p.serving != serving || p.account != account || serving != nil && !p.isSent {
		return vedette.Errorf(vedette.Unavailable, "operation %.60q has been given to another agent meanwhile", string(out.ID))
	}
	delete(d.pending, out.ID)
	p.forwarded <- out // has room, because nothing else ends a pending operation
	return nil
}

// waiting returns the account of an operation that this server has accepted and that has no outcome, and the agent that has it, which may
// be nil.
func (d *Dispatcher) waiting(id vedette.OperationID) (vedette.AccountName, servingAgent, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.pending[id]
	if p == nil || p.relay != nil || p.isLogs {
		return "", nil, vedette.Errorf(vedette.NotFound, "operation %.60q waits for no result at this server: it has ended, or another server has accepted it", string(id))
	}
	return p.account, p.serving, nil
}

// servingAgent is an agent that serves an account, connected to this server or to another.
type servingAgent interface {
	describe() lifecycle.Agent
	// recipient identifies its process; zero if an outcome can come only over the connection on which it has the operation.
	recipient() recipient
	// send must not wait.
	send(op vedette.Operation) error
	cancel(id vedette.OperationID)
	// gone is closed when it cannot answer any more; nil if events tells.
	gone() <-chan struct{}
	// events are those of an agent at another server; nil for one at this.
	events() <-chan RemoteEvent
	close()
}

// remoteAgent is a RemoteAgent as a servingAgent.
type remoteAgent struct{ RemoteAgent }

func (r remoteAgent) describe() lifecycle.Agent       { return r.Agent() }
func (r remoteAgent) send(op vedette.Operation) error { return r.Send(op) }
func (r remoteAgent) cancel(vedette.OperationID)      { r.Cancel() }
func (r remoteAgent) gone() <-chan struct{}           { return nil }
func (r remoteAgent) events() <-chan RemoteEvent      { return r.Events() }
func (r remoteAgent) close()                          { r.Close() }

// recipient lets the process answer on a connection to this server, too, if it connects here next.
func (r remoteAgent) recipient() recipient {
	agent := r.Agent()
	if agent.Process == "" {
		return recipient{}
	}
	return recipient{agent: agent.ID, process: agent.Process}
}

// remoteSearch is a search for one operation, which may be begun and ended several times. The zero value has not begun.
type remoteSearch struct {
	Search
	end      context.CancelFunc // nil while it does not run
	attempts int
	missed   bool // the agent was not found at once, or there is no other server
}

// run begins the search if it does not run, and returns where the agent comes from.
func (s *remoteSearch) run(ctx context.Context, remote Remote, f *inflight) <-chan RemoteAgent {
	if remote == nil {
		s.missed = true
		return nil
	}
	if s.end == nil {
		ctx, s.end = context.WithCancel(ctx)
		s.Search = remote.Find(ctx, Wanted{Operation: f.op.ID, Account: f.op.Account, Documents: documentsOf(f.op.Args), Known: f.known.key,
			Attempts: s.attempts})
		s.missed = false
	}
	return s.Found()
}

// missing returns a channel that is closed when the agent was not found at once; nil if that is known.
func (s *remoteSearch) missing() <-chan struct{} {
	if s.missed || s.Search == nil {
		return nil
	}
	return s.Missed()
}

// stop ends the search.
func (s *remoteSearch) stop() {
	if s.end != nil {
		s.end()
		s.end = nil
	}
}

// obstacle returns why no agent at another server is found.
func (s *remoteSearch) obstacle() string {
	if s.Search == nil {
		return ""
	}
	return s.Obstacle()
}
