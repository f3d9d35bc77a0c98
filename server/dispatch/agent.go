package dispatch

import (
	"io"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/dispatch/lifecycle"
)

// AgentStream sends to a connected agent. Its methods do not wait, and messages arrive in
// the order of the calls.
type AgentStream interface {
	// Send fails if the protocol cannot express the operation.
	Send(vedette.Operation) error
	Cancel(vedette.OperationID)
	Forget(vedette.OperationID)
}

// AttachedAgent is an agent whose operation stream is open.
type AttachedAgent struct {
	dispatcher *Dispatcher
	member     *assigner.Member
	process    string
	stream     AgentStream
	detached   chan struct{} // closed by Detach
}

// describe returns what the life of an operation depends on.
func (a *AttachedAgent) describe() lifecycle.Agent {
	return lifecycle.Agent{ID: a.member.ID, Version: a.member.Version, Process: a.process}
}

func (a *AttachedAgent) send(op vedette.Operation) error { return a.stream.Send(op) }
func (a *AttachedAgent) cancel(id vedette.OperationID)   { a.stream.Cancel(id) }
func (a *AttachedAgent) gone() <-chan struct{}           { return a.detached }
func (a *AttachedAgent) events() <-chan RemoteEvent      { return nil }
func (a *AttachedAgent) close()                          {}

// Attach makes an agent's process available for operations until Detach.
func (d *Dispatcher) Attach(m *assigner.Member, process string, l AgentStream) *AttachedAgent {
	a := &AttachedAgent{dispatcher: d, member: m, process: process, stream: l, detached: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attached[m] = a
	d.notifyLocked()
	return a
}

// Detach removes the agent. It must be called exactly once.
func (a *AttachedAgent) Detach() {
	d := a.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.attached[a.member] == a {
		delete(d.attached, a.member)
	}
	close(a.detached)
	d.notifyLocked()
}

// nextChange returns a channel that is closed when an agent attaches or detaches, or an
// account has a new cacher.
func (d *Dispatcher) nextChange() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// notify wakes everything that waits for an agent.
func (d *Dispatcher) notify() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notifyLocked()
}

func (d *Dispatcher) notifyLocked() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// endWaits tells the agents that have an operation that its caller has left. The operation continues, but does not
// wait until what it deleted is gone.
func (d *Dispatcher) endWaits(id vedette.OperationID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.pending[id]
	if p == nil {
		return
	}
	for _, a := range d.attached {
		if p.recipients[a.recipient()] {
			a.stream.Cancel(id)
		}
	}
	if r, isRemote := p.serving.(remoteAgent); isRemote {
		r.Cancel()
	}
}

// HandleOutcome passes an outcome to its waiting caller and reports whether there is
// one. Only a process that was sent the operation can answer it. The agent may forget
// the outcome either way, because an operation without a waiting caller has already
// ended; with several servers, only when that is known, or when the server that accepted
// the operation has the outcome.
func (a *AttachedAgent) HandleOutcome(out vedette.Outcome) bool {
	d := a.dispatcher
	d.mu.Lock()
	p, isRecipient := d.lookUpLocked(a, out.ID)
	if isRecipient {
		delete(d.pending, out.ID)
	}
	d.mu.Unlock()
	switch {
	case out.Stream == nil && p == nil:
		d.forgetUnclaimed(a, out.ID)
	case out.Stream == nil && !(isRecipient && p.relay != nil):
		a.stream.Forget(out.ID)
	case out.Stream != nil:
		out.Stream = &logStream{ReadCloser: out.Stream, cancel: sync.OnceFunc(func() { a.stream.Cancel(out.ID) })}
	}
	if !isRecipient {
		a.countRefused(out.ID, p != nil)
		return false
	}
	p.outcome <- out
	return true
}

// logStream tells the agent when its reader closes the log. The agent would not notice
// by itself, because a container may write nothing for hours.
type logStream struct {
	io.ReadCloser
	cancel func()
}

// Close closes the log at the server and cancels it at the agent.
func (s *logStream) Close() error {
	s.cancel()
	return s.ReadCloser.Close()
}
