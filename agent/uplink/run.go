package uplink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// runner executes what connections decides. It belongs to one goroutine.
type runner struct {
	uplink   *Uplink
	ctx      context.Context // of all links
	state    connections
	links    map[connectionID]*link
	running  sync.WaitGroup
	events   chan connectionEvent // of links; Run receives until all have ended
	timer    *time.Timer          // of the pause
	failures failureLog
}

// Run keeps the connection until ctx ends.
//
//nolint:contextcheck // r has the context of all links
func (u *Uplink) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := newRunner(ctx, u)
	defer r.timer.Stop()
	err := r.step(started{})
	for err == nil && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-r.timer.C:
			err = r.step(pauseOver{})
		case e := <-r.events:
			err = r.step(e)
		}
	}
	cancel()
	r.close()
	return err
}

func newRunner(ctx context.Context, u *Uplink) *runner {
	return &runner{uplink: u, ctx: ctx, state: connections{pause: reconnectPause{pauses: u.cfg.Backoff.pauses(u.cfg.ShortestPause)}},
		links: map[connectionID]*link{}, events: make(chan connectionEvent), timer: time.NewTimer(time.Hour)}
}

// close waits until all links have ended.
func (r *runner) close() {
	go func() {
		r.running.Wait()
		close(r.events)
	}()
	for e := range r.events {
		if e, ok := e.(ended); ok {
			_ = r.endLink(e, false) // the agent stops
		}
	}
}

// step handles an event, and executes what follows from it.
func (r *runner) step(e connectionEvent) error {
	effects := r.state.step(e, time.Now())
	r.note(e, effects)
	for _, effect := range effects {
		switch effect := effect.(type) {
		case openConnection:
			if err := r.open(effect.id); err != nil {
				return err
			}
		case serveOver:
			l := r.links[effect.id]
			l.servesSince = time.Now()
			close(l.serving)
		case endConnection:
			l := r.links[effect.id]
			l.cancel(l.drain)
		case awaitOperations:
			l := r.links[effect.id]
			r.running.Go(func() { l.awaitOperations(r.ctx) })
		case pauseFor:
			r.timer.Reset(effect.duration)
		}
	}
	return nil
}

// note remembers and logs what has happened, before what follows is executed.
func (r *runner) note(e connectionEvent, effects []connectionEffect) {
	var pause time.Duration
	isReplaced := false
	for _, effect := range effects {
		switch effect := effect.(type) {
		case pauseFor:
			pause = effect.duration
		case serveOver:
			isReplaced = true
		case openConnection, endConnection, awaitOperations:
		}
	}
	switch e := e.(type) {
	case drained:
		r.noteDrain(e, pause)
	case ended:
		if err := r.endLink(e, isReplaced); !isReplaced {
			r.logFailure(err, pause)
		}
	}
}

func (r *runner) noteDrain(e drained, pause time.Duration) {
	l := r.links[e.id]
	if l.drain != nil { // it has said so before
		return
	}
	l.drain = fmt.Errorf("%w: %s", errDrain, vedette.CleanText(e.reason, maxDrainReason))
	if !e.staysOpen {
		l.avoid()
	}
	if e.id == r.state.current {
		r.uplink.log.Info("connecting again", "server", r.uplink.cfg.Target, "in", pause.Round(time.Millisecond), "reason", l.drain)
	}
}

// maxDrainReason bounds the reason of a Drain in bytes.
const maxDrainReason = 1 << 10

// logFailure logs why a connection has ended or failed. A server that stops is not a failure.
func (r *runner) logFailure(err error, pause time.Duration) {
	log, server := r.uplink.log, r.uplink.cfg.Target
	if errors.Is(err, errDrain) {
		log.Info("connecting again", "server", server, "in", pause.Round(time.Millisecond), "reason", err)
		return
	}
	suppressed, ok := r.failures.shouldLog(err, time.Now())
	switch {
	case !ok:
	case r.state.current != 0:
		log.Warn("no connection to another server yet, retrying; the one before still serves", "server", server,
			"in", pause.Round(time.Millisecond), "error", err, "suppressed", suppressed)
	default:
		log.Warn("no connection to the server, retrying", "server", server, "in", pause.Round(time.Millisecond), "error", err,
			"suppressed", suppressed)
	}
}

// open opens a connection, and serves over it until it ends.
func (r *runner) open(id connectionID) error {
	conn, err := r.uplink.dial()
	if err != nil {
		return err
	}
	l := newLink(r.uplink)
	l.id, l.report = id, func(e connectionEvent) { r.events <- e }
	ctx, cancel := context.WithCancelCause(r.ctx)
	l.cancel = cancel
	r.links[id] = l
	r.running.Go(func() {
		defer cancel(nil)
		err := l.run(ctx, conn)
		if r.ctx.Err() != nil {
			err = context.Canceled // the agent stops, and the stream may say so in several ways
		}
		_ = conn.Close() // fails only if it was closed before
		r.events <- ended{id, err}
	})
	return nil
}

// endLink notes that a link has ended, and returns why. If it is replaced at once, the agent never counts as not connected.
func (r *runner) endLink(e ended, isReplaced bool) error {
	u, l := r.uplink, r.links[e.id]
	delete(r.links, e.id)
	if l.drain != nil {
		e.err = l.drain // however it has ended after that
	}
	u.cfg.noteRejection(e.err)
	err := explainError(e.err, u.cfg)
	if !l.servesSince.IsZero() && time.Since(l.servesSince) > stableAfter {
		r.failures.reset()
	}
	if !errors.Is(err, errDrain) { // avoided before, or it accepts agents
		l.avoid()
	}
	u.mu.Lock()
	hasServed := u.link == l
	u.cfg.Observer.Disconnected(disconnectReason(e.err), hasServed)
	if hasServed {
		u.link = nil
	}
	if u.link == nil && !isReplaced {
		u.status.Store(&linkStatus{server: u.status.Load().server, lost: err})
	}
	u.mu.Unlock()
	if hasServed {
		u.box.Rewind()
	}
	return err
}

// avoid makes later connections try the server last.
func (l *link) avoid() {
	if b := l.uplink.balancer; b != nil && l.address.IsValid() {
		b.avoid(l.address, time.Now())
	}
}

// awaitOperations reports when the operations that came over the link have ended, and their outcomes have arrived, or
// after operationsTimeout. Logs do not count, because they may last for hours.
func (l *link) awaitOperations(ctx context.Context) {
	timeout := time.NewTimer(operationsTimeout)
	defer timeout.Stop()
	ticker := time.NewTicker(operationsInterval)
	defer ticker.Stop()
	for x := l.uplink.executor; x != nil && x.IsBusy(ackWait); {
		select {
		case <-ctx.Done():
			return
		case <-l.done:
			return // the runner knows
		case <-timeout.C:
			l.report(operationsEnded{l.id})
			return
		case <-ticker.C:
		}
	}
	l.report(operationsEnded{l.id})
}

const (
	// operationsTimeout is how long operations may keep the agent at a server that asks to connect again: as long as a server that
	// stops waits for them. What runs longer goes on, and a server that goes on too sends it again to this process.
	operationsTimeout = 8 * time.Second
	// ackWait is how long a server may take to acknowledge an outcome. Where it does not, another server knows the operation, and gets the
	// outcome over the next connection.
	ackWait = time.Second
	// operationsInterval is how often awaitOperations looks.
	operationsInterval = 10 * time.Millisecond
)
