package uplink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/wire"
)

// link is one connection:
//
//	greeting ──Welcome──> serving ──error, silence, Goodbye──> lost
//
// While it serves, one goroutine sends what the outbox gives, one receives, one
// sends pulses and watches for the server's.
type link struct {
	uplink            *Uplink
	stream            grpc.BidiStreamingClient[wire.AgentMessage, wire.ServerMessage]
	heartbeatInterval time.Duration
	credit            int
	acked             chan struct{} // holds a token after an acknowledgement
	cancel            context.CancelFunc

	lastReceived  atomic.Int64 // when the server last said something, nanoseconds
	lastHeartbeat atomic.Pointer[serverHeartbeat]

	mu             sync.Mutex // guards what follows, and Send, which waits while the server has no room
	writer         wire.Writer
	idleHeartbeats int // pulses since the last change was sent
}

// serverHeartbeat is that of the server's last Heartbeat, or 0 for its Welcome, and when it was
// received. Heartbeats return it, so that the server need not trust this clock.
type serverHeartbeat struct {
	number   int64
	received time.Time
}

var (
	errHeartbeatTimeout = errors.New("the server was not heard for three pulses")
	errHandshakeTimeout = errors.New("the connection was opened, and the server says nothing")
	errDrain            = errors.New("the server asked to connect again")
)

// batchBytes is how much is compressed and sent at once. More would delay the
// live changes behind it, less would cost flushes.
const batchBytes = 128 << 10

func newLink(u *Uplink) *link { return &link{uplink: u, acked: make(chan struct{}, 1)} }

// handshakeTimeout is how long the server may take for its first words. Before them
// its pulse is not known.
const handshakeTimeout = 20 * time.Second

func (l *link) run(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, l.cancel = context.WithCancel(ctx)
	defer l.cancel()
	group, ctx := errgroup.WithContext(ctx)
	stream, err := wire.NewCachingClient(conn).Connect(ctx)
	if err != nil {
		group.Go(func() error { return err })
		return group.Wait()
	}
	l.stream = stream
	group.Go(func() error { return l.serve(ctx, group, conn) })
	return group.Wait()
}

func (l *link) serve(ctx context.Context, group *errgroup.Group, conn *grpc.ClientConn) error {
	handshakeTimer := time.AfterFunc(handshakeTimeout, l.cancel)
	welcome, err := l.handshake()
	if !handshakeTimer.Stop() {
		return errHandshakeTimeout
	}
	if err != nil {
		return err
	}
	u := l.uplink
	l.heartbeatInterval = time.Duration(max(1, welcome.GetHeartbeatSeconds())) * time.Second
	l.credit = max(int(welcome.GetCreditBytes()), 2*batchBytes)
	l.lastReceived.Store(time.Now().UnixNano())
	l.lastHeartbeat.Store(&serverHeartbeat{received: time.Now()})
	u.handler.Connected(ServerSettings{Kinds: welcome.GetKinds(), Projections: wire.ToProjections(welcome.GetProjections()), Annotations: welcome.GetAnnotations()})
	u.log.Info("connected", "server", welcome.GetServerId(), "version", welcome.GetServerVersion())
	group.Go(l.receive)
	group.Go(func() error { return l.checkHeartbeats(ctx) })
	for _, m := range u.activateLink(l, welcome.GetServerId()) {
		if err := l.send(m); err != nil {
			return err
		}
	}
	if session := welcome.GetSession(); session != "" && u.executor != nil { // older servers give no operations
		group.Go(func() error { return l.serveOperations(ctx, conn, session) })
	}
	group.Go(func() error { return l.sendFromOutbox(ctx) })
	return l.sendHeartbeats(ctx)
}

func (l *link) handshake() (*wire.Welcome, error) {
	cfg := l.uplink.cfg
	err := l.stream.Send(&wire.AgentMessage{Message: &wire.AgentMessage_Hello{Hello: &wire.Hello{
		OldestProtocol: wire.OldestProtocol, NewestProtocol: wire.NewestProtocol,
		AgentId: string(cfg.Agent), AgentVersion: cfg.Version, ZoneId: cfg.ZoneID, Hostname: cfg.Hostname,
	}}})
	if err != nil {
		_, err = l.stream.Recv() // Send says EOF only; Recv says why
		return nil, err
	}
	first, err := l.stream.Recv()
	if err != nil {
		return nil, err
	}
	if first.GetWelcome() == nil {
		return nil, errors.New("the server's first message is no Welcome")
	}
	return first.GetWelcome(), nil
}

// sendControl sends a message beside the records. A failure ends the link by what
// receive hears.
func (l *link) sendControl(m *wire.AgentMessage) {
	if err := l.send(m); err != nil {
		l.uplink.log.Debug("message not sent; the connection is lost", "error", err)
	}
}

func (l *link) send(m *wire.AgentMessage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stream.Send(m)
}

// sendFromOutbox sends changes as the outbox gives them, while the server gives credit.
func (l *link) sendFromOutbox(ctx context.Context) error {
	box := l.uplink.box
	for {
		budget := l.credit - box.Unacknowledged()
		if budget <= 0 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-l.acked:
			}
			continue
		}
		changes, err := box.Take(ctx, min(budget, batchBytes))
		if err != nil {
			return err
		}
		if err := l.sendChanges(changes); err != nil {
			return err
		}
	}
}

func (l *link) sendChanges(changes []outbox.Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idleHeartbeats = 0
	var header []byte
	for _, c := range changes {
		header = wire.AppendHeader(header[:0], c.Account, c.Term, c.Feed)
		if err := l.writer.Write(header, c.Record); err != nil {
			return err
		}
	}
	return l.flushLocked(l.writer.Flush)
}

func (l *link) flushLocked(flush func() ([]*wire.Data, error)) error {
	pieces, err := flush()
	if err != nil {
		return err
	}
	for _, d := range pieces {
		if err := l.stream.Send(&wire.AgentMessage{Message: &wire.AgentMessage_Data{Data: d}}); err != nil {
			return err
		}
	}
	return nil
}

// sendHeartbeats sends pulses.
func (l *link) sendHeartbeats(ctx context.Context) error {
	ticker := time.NewTicker(l.heartbeatInterval)
	defer ticker.Stop()
	for {
		if err := l.sendHeartbeat(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// checkHeartbeats notices when the server sends no pulses. It is apart from beat, which
// may be waiting for room at a server that is gone.
func (l *link) checkHeartbeats(ctx context.Context) error {
	ticker := time.NewTicker(l.heartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case now := <-ticker.C:
			if now.Sub(time.Unix(0, l.lastReceived.Load())) > 3*l.heartbeatInterval {
				return errHeartbeatTimeout
			}
		}
	}
}

// idleAfterHeartbeats is how many pulses without a change make a stream idle. An idle
// stream's compression is given back on both sides.
const idleAfterHeartbeats = 3

func (l *link) sendHeartbeat() error {
	rec, err := wire.EncodeStep(&wire.Record_Heartbeat{Heartbeat: l.newHeartbeat(l.uplink.box.PendingSince(), time.Now())})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writer.Write(rec); err != nil {
		return err
	}
	if l.idleHeartbeats++; l.idleHeartbeats > idleAfterHeartbeats {
		return l.flushLocked(l.writer.Close)
	}
	return l.flushLocked(l.writer.Flush)
}

// newHeartbeat says since when the oldest change waits that was not sent.
func (l *link) newHeartbeat(pendingSince, now time.Time) *wire.AgentHeartbeat {
	last := l.lastHeartbeat.Load()
	return &wire.AgentHeartbeat{
		UnixMillis: pendingSince.UnixMilli(), AgeMillis: proto.Int64(now.Sub(pendingSince).Milliseconds()),
		Stamp: last.number, HeldMillis: now.Sub(last.received).Milliseconds(),
	}
}

// receive hands on what the server says.
func (l *link) receive() error {
	for {
		m, err := l.stream.Recv()
		if err != nil {
			return err
		}
		l.lastReceived.Store(time.Now().UnixNano())
		if err := l.handle(m); err != nil {
			return err
		}
	}
}

func (l *link) handle(m *wire.ServerMessage) error {
	u := l.uplink
	switch m := m.GetMessage().(type) {
	case *wire.ServerMessage_Ack:
		u.box.Ack(m.Ack.GetRecords())
		select {
		case l.acked <- struct{}{}:
		default:
		}
	case *wire.ServerMessage_Assignment:
		a := m.Assignment
		u.handler.Assigned(Assignment{Account: vedette.AccountName(a.GetAccount()), Role: a.GetRole(),
			Term: vedette.Term(a.GetTerm()), Marks: wire.ToMarks(a.GetMarks()), Message: a.GetMessage()})
	case *wire.ServerMessage_Index:
		i := m.Index
		u.handler.Indexed(Index{Account: vedette.AccountName(i.GetAccount()), Feed: wire.ToFeed(i.GetFeed()),
			Digests: i.GetDigests(), Last: i.GetLast()})
	case *wire.ServerMessage_Heartbeat:
		l.lastHeartbeat.Store(&serverHeartbeat{number: m.Heartbeat.GetStamp(), received: time.Now()})
	case *wire.ServerMessage_Drain:
		return fmt.Errorf("%w: %s", errDrain, m.Drain.GetReason())
	}
	return nil
}
