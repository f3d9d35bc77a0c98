package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/dispatch/lifecycle"
	"github.com/vedette-io/vedette/server/peer/peerproto"
	"github.com/vedette-io/vedette/wire"
)

// remoteAgent implements dispatch.RemoteAgent: one call of Relay, at the server that has accepted the operation. One goroutine sends, one
// receives. The call ends when the other server has ended it, or soon after finish.
type remoteAgent struct {
	client  *Client
	peer    Peer
	stream  grpc.BidiStreamingClient[peerproto.RelayUp, peerproto.RelayDown]
	cancel  context.CancelCauseFunc
	wanted  dispatch.Wanted
	agent   lifecycle.Agent
	cluster vedette.Cluster
	stamp   int64     // of Agent
	offered time.Time // when Agent was received
	events  chan dispatch.RemoteEvent
	ready   chan struct{} // has room for one: there is something to send, or nothing more

	mu         sync.Mutex
	queue      []*wire.OperationsDown
	isFinished bool      // nothing more is sent
	isClosed   bool      // nobody takes events
	isLog      bool      // the log of the operation has begun
	sentAt     time.Time // of the operation; zero before
	isLogs     bool      // the verb of the operation is logs
	reads      bool
	isCounted  bool // for metrics
}

// handshake asks for the agent.
func (a *remoteAgent) handshake(ctx context.Context) error {
	w := a.wanted
	open := &peerproto.Open{Operation: string(w.Operation), Account: string(w.Account), Documents: uint64(max(0, w.Documents))}
	if w.Known != (vedette.Key{}) {
		open.Known = &wire.Key{Kind: wire.FromKind(w.Known.Kind), Namespace: w.Known.Namespace, Name: w.Known.Name}
	}
	_ = a.stream.Send(&peerproto.RelayUp{Message: &peerproto.RelayUp_Open{Open: open}}) // Recv returns the reason of a failure
	m, err := a.stream.Recv()
	if err != nil {
		return unreachable(a.peer, causeOf(ctx, err))
	}
	if u := m.GetUnsent(); u != nil {
		return unsent(a.peer, u)
	}
	offered := m.GetAgent()
	if offered.GetId() == "" {
		return unreachable(a.peer, errBadPeer)
	}
	a.offered = time.Now()
	a.stamp = offered.GetStamp()
	a.agent = lifecycle.Agent{ID: vedette.AgentID(offered.GetId()), Version: offered.GetVersion(), Process: offered.GetProcess()}
	a.cluster = wire.ToCluster(offered.GetCluster())
	return nil
}

// Agent implements dispatch.RemoteAgent.
func (a *remoteAgent) Agent() lifecycle.Agent { return a.agent }

// Server implements dispatch.RemoteAgent.
func (a *remoteAgent) Server() vedette.ServerID { return a.peer.ID }

// Cluster implements dispatch.RemoteAgent.
func (a *remoteAgent) Cluster() vedette.Cluster { return a.cluster }

// Events implements dispatch.RemoteAgent.
func (a *remoteAgent) Events() <-chan dispatch.RemoteEvent { return a.events }

// Send implements dispatch.RemoteAgent. The operation has the stamp of the other server that it must have reached by now, from which its
// time counts.
func (a *remoteAgent) Send(op vedette.Operation) error {
	now := time.Now()
	encoded, err := wire.FromOperation(op, now)
	if err != nil {
		return err
	}
	encoded.SentStamp = a.stamp + now.Sub(a.offered).Milliseconds()
	a.mu.Lock()
	a.sentAt = now
	_, a.isLogs = op.Args.(vedette.LogsArgs)
	a.reads = op.Reads()
	a.mu.Unlock()
	a.put(&wire.OperationsDown{Message: &wire.OperationsDown_Operation{Operation: encoded}})
	return nil
}

// Cancel implements dispatch.RemoteAgent.
func (a *remoteAgent) Cancel() {
	a.put(&wire.OperationsDown{Message: &wire.OperationsDown_Cancel{Cancel: &wire.Cancel{Id: string(a.wanted.Operation)}}})
}

func (a *remoteAgent) put(m *wire.OperationsDown) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.isFinished {
		a.queue = append(a.queue, m)
		a.wakeLocked()
	}
}

func (a *remoteAgent) wakeLocked() {
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

// closeTimeout is how long the other server may take to end a call that this one has finished.
const closeTimeout = time.Second

// Close implements dispatch.RemoteAgent.
func (a *remoteAgent) Close() {
	a.mu.Lock()
	isClosed := a.isClosed
	a.isClosed = true
	isLog := a.isLog
	a.mu.Unlock()
	if isClosed {
		return
	}
	select {
	case e, ok := <-a.events:
		if ok && e.Outcome.Stream != nil {
			_ = e.Outcome.Stream.Close() // nothing was read from it
			return
		}
		isLog = false
	default:
	}
	if !isLog { // otherwise its reader finishes
		a.finish()
	}
}

// finish sends what is queued, and then ends the call.
func (a *remoteAgent) finish() {
	a.count("canceled") // unless it has ended before
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isFinished {
		return
	}
	a.isFinished = true
	a.wakeLocked()
	time.AfterFunc(closeTimeout, func() { a.cancel(nil) })
}

// send sends messages until there are none left, or the call ends.
func (a *remoteAgent) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.ready:
		}
		a.mu.Lock()
		messages, isFinished := a.queue, a.isFinished
		a.queue = nil
		a.mu.Unlock()
		for _, m := range messages {
			if err := a.sendParts(m); err != nil {
				return // receive gets the reason
			}
		}
		if isFinished {
			_ = a.stream.CloseSend() // never fails
			return
		}
	}
}

func (a *remoteAgent) sendParts(m *wire.OperationsDown) error {
	parts, err := wire.Split(m)
	if err != nil {
		a.cancel(err)
		return fmt.Errorf("encode an operation for server %s: %w", a.peer.ID, err)
	}
	for _, part := range parts {
		if err := a.stream.Send(&peerproto.RelayUp{Message: &peerproto.RelayUp_Down{Down: part}}); err != nil {
			return err
		}
	}
	return nil
}

// receive receives what comes of the operation until the call ends.
func (a *remoteAgent) receive(ctx context.Context) {
	defer a.cancel(nil)
	in := inbound{remoteAgent: a, ctx: ctx}
	defer in.end()
	for {
		m, err := a.stream.Recv()
		if err == nil {
			err = in.handle(m)
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, errBadPeer):
			a.client.log.Warn("call to another server ended: it does not keep to the protocol", "server", a.peer.ID, "operation", a.wanted.Operation, "error", err)
		case !errors.Is(err, io.EOF) && ctx.Err() == nil:
			a.client.log.Debug("call to another server ended", "server", a.peer.ID, "operation", a.wanted.Operation, "error", err)
		}
		return
	}
}

// state returns whether the operation was sent, and what may come of it.
func (a *remoteAgent) state() (isSent, isLogs, reads bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.sentAt.IsZero(), a.isLogs, a.reads
}

// count counts the end of an operation that was sent, once.
func (a *remoteAgent) count(result string) {
	a.mu.Lock()
	isCounted, sentAt := a.isCounted, a.sentAt
	a.isCounted = true
	a.mu.Unlock()
	if !isCounted && !sentAt.IsZero() {
		a.client.cfg.Observer.Forwarded(result, time.Since(sentAt))
	}
}

// afterTimeout cancels when a context ends or time has passed, until the returned function is called. That reports whether
// nothing was canceled.
func afterTimeout(ctx context.Context, d time.Duration, cancel context.CancelCauseFunc) (stop func() bool) {
	timer := time.AfterFunc(d, func() { cancel(fmt.Errorf("it did not answer within %v", d)) })
	stopContext := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return sync.OnceValue(func() bool {
		isInTime := timer.Stop()
		return stopContext() && isInTime
	})
}
