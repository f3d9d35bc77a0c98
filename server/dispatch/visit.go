package dispatch

import (
	"io"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/roster"
)

// Line is the way to a connected agent. Its methods do not wait, and what they say
// arrives in the order in which they are called.
type Line interface {
	Send(vedette.Operation)
	Cancel(vedette.OperationID)
	Forget(vedette.OperationID)
}

// Visit is an agent that takes operations now.
type Visit struct {
	dispatch *Dispatch
	member   *roster.Member
	process  string
	line     Line
	left     chan struct{} // closed by Leave
}

// Attach lets an agent's process take operations until Leave.
func (d *Dispatch) Attach(m *roster.Member, process string, l Line) *Visit {
	v := &Visit{dispatch: d, member: m, process: process, line: l, left: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.visits[m] = v
	d.tellLocked()
	return v
}

// Leave ends the visit. It is called once.
func (v *Visit) Leave() {
	d := v.dispatch
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.visits[v.member] == v {
		delete(d.visits, v.member)
	}
	close(v.left)
	d.tellLocked()
}

// latest returns a channel that is closed when an agent comes or goes, or an account
// has a new holder.
func (d *Dispatch) latest() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.news
}

// tell has those that wait for an agent look again.
func (d *Dispatch) tell() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tellLocked()
}

func (d *Dispatch) tellLocked() {
	close(d.news)
	d.news = make(chan struct{})
}

// Outcome hands an outcome to who waits for it, and reports whether anyone does.
// Only a process that was sent the operation can answer it. The agent may forget it
// either way: what nobody waits for was answered or given up before.
func (v *Visit) Outcome(out vedette.Outcome) bool {
	d := v.dispatch
	d.mu.Lock()
	p, held := d.heldLocked(v, out.ID)
	if held {
		delete(d.waiting, out.ID)
	}
	d.mu.Unlock()
	if out.Stream == nil {
		v.line.Forget(out.ID)
	} else {
		out.Stream = &stream{ReadCloser: out.Stream, cancel: sync.OnceFunc(func() { v.line.Cancel(out.ID) })}
	}
	if !held {
		v.refused(out.ID, p != nil)
		return false
	}
	p.outcome <- out
	return true
}

// stream tells the agent when a log is read no more, which may not write for
// hours.
type stream struct {
	io.ReadCloser
	cancel func()
}

// Close ends the log at both ends.
func (s *stream) Close() error {
	s.cancel()
	return s.ReadCloser.Close()
}
