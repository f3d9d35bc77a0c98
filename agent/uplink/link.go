package uplink

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/wire"
)

// link is one connection:
//
//	handshake ──Welcome──> ready ──serve──> serving ──error, silence, end──> lost
//
// While it is ready, the connection before it may still serve, and only signs of life are sent over this one. While it
// serves, one goroutine sends the changes of the outbox, one receives, two send heartbeats and signs of life, and one
// checks the server's heartbeats.
type link struct {
	uplink            *Uplink
	id                connectionID
	report            func(connectionEvent)   // what happens to the link; runner executes what follows
	cancel            context.CancelCauseFunc // ends the link; set before run
	serving           chan struct{}           // closed when the link is to serve
	isServing         atomic.Bool             // the handler gets messages
	address           netip.AddrPort          // of the server; zero if unknown
	drain             error                   // why the server asked to connect again; owned by runner
	servesSince       time.Time               // zero if it does not serve; owned by runner
	stream            grpc.BidiStreamingClient[wire.AgentMessage, wire.ServerMessage]
	heartbeatInterval time.Duration
	credit            int
	acked             chan struct{}      // holds a token after an acknowledgement
	aliveInterval     time.Duration      // as last asked for; owned by receive
	newAliveInterval  chan time.Duration // holds an interval that sendAlive has not taken yet

	clock *serverClock
	ages  ageLister     // owned by sendHeartbeats
	done  chan struct{} // closed when the link has ended

	lastReceived  atomic.Int64 // when the last message arrived, in Unix nanoseconds
	lastHeartbeat atomic.Pointer[serverHeartbeat]

	mu             sync.Mutex // guards the fields below and Send, which blocks while the server has no room
	writer         wire.Writer
	idleHeartbeats int // heartbeats since the last change was sent
}

// serverHeartbeat is the number of the server's last Heartbeat, or 0 for its Welcome, and when
// it arrived. The agent's heartbeats return it, so that the server does not depend on the
// agent's clock.
type serverHeartbeat struct {
	number   int64
	received time.Time
}

var (
	errHeartbeatTimeout = errors.New("no message from the server for three heartbeats")
	errHandshakeTimeout = errors.New("the connection is open, but the server sends nothing")
	errDrain            = errors.New("the server asked to connect again")
)

// batchBytes is how much is compressed and sent at once. More would delay the live changes
// behind it, less would cost more flushes.
const batchBytes = 128 << 10

func newLink(u *Uplink) *link {
	return &link{uplink: u, acked: make(chan struct{}, 1), newAliveInterval: make(chan time.Duration, 1), clock: newServerClock(),
		done: make(chan struct{}), serving: make(chan struct{}), report: func(connectionEvent) {}}
}

// handshakeTimeout is how long the server may take to send its Welcome. Until then its
// heartbeat interval is not known.
const handshakeTimeout = 20 * time.Second

// run serves one stream over conn until ctx ends, or the stream.
func (l *link) run(ctx context.Context, conn *grpc.ClientConn) error {
	defer close(l.done)
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
	handshakeTimer := time.AfterFunc(handshakeTimeout, func() { l.cancel(errHandshakeTimeout) })
	welcome, err := l.handshake() //nolint:contextcheck // the stream has the context
	if !handshakeTimer.Stop() {
		return errHandshakeTimeout
	}
	if err != nil {
		return err
	}
	l.heartbeatInterval = time.Duration(max(1, welcome.GetHeartbeatSeconds())) * time.Second
	l.credit = max(int(welcome.GetCreditBytes()), 2*batchBytes)
	l.lastReceived.Store(time.Now().UnixNano())
	l.lastHeartbeat.Store(&serverHeartbeat{received: time.Now()})
	l.report(welcomed{l.id})
	group.Go(l.receive)
	group.Go(func() error { return l.checkHeartbeats(ctx) })
	group.Go(func() error { return l.sendAlive(ctx) })
	if err := l.awaitService(ctx); err != nil {
		return err
	}
	if err := l.register(welcome); err != nil {
		return err
	}
	if session := welcome.GetSession(); session != "" && l.uplink.executor != nil { // older servers send no operations
		group.Go(func() error { return l.serveOperations(ctx, conn, session) })
	}
	group.Go(func() error { return l.sendFromOutbox(ctx) })
	return l.sendHeartbeats(ctx)
}

// awaitService waits until the link is to serve. It sends signs of life, because the connection before may serve for some time.
func (l *link) awaitService(ctx context.Context) error {
	ticker := time.NewTicker(l.heartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.serving:
			return nil
		case <-ticker.C:
			l.sendControl(&wire.AgentMessage{Message: &wire.AgentMessage_Alive{Alive: &wire.Alive{}}})
		}
	}
}

// register makes the link the current one, and registers the accounts over it.
func (l *link) register(welcome *wire.Welcome) error {
	u := l.uplink
	u.heartbeatInterval.Store(int64(l.heartbeatInterval))
	l.ages.commonAge = u.proofLead() + 500*time.Millisecond
	u.handler.Connected(ServerSettings{Kinds: welcome.GetKinds(), Projections: wire.ToProjections(welcome.GetProjections()),
		Annotations: welcome.GetAnnotations(), Verifies: welcome.GetProtocol() >= wire.VerifyProtocol})
	u.log.Info("connected", "server", welcome.GetServerId(), "version", welcome.GetServerVersion())
	l.isServing.Store(true)
	for _, m := range u.activateLink(l, welcome.GetServerId()) {
		if err := l.send(m); err != nil {
			return err
		}
	}
	return nil
}

// ended reports whether the connection is lost.
func (l *link) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

func (l *link) handshake() (*wire.Welcome, error) {
	cfg := l.uplink.cfg
	l.clock.began()
	err := l.stream.Send(&wire.AgentMessage{Message: &wire.AgentMessage_Hello{Hello: &wire.Hello{
		OldestProtocol: wire.OldestProtocol, NewestProtocol: wire.NewestProtocol,
		AgentId: string(cfg.Agent), AgentVersion: cfg.Version, ZoneId: cfg.ZoneID, Hostname: cfg.Hostname,
		Process: cfg.Process, Replicas: uint32(max(0, cfg.Replicas)),
	}}})
	if err != nil {
		_, err = l.stream.Recv() // Send returns only io.EOF; Recv returns the reason
		l.address = addressOf(l.stream.Context())
		return nil, err
	}
	first, err := l.stream.Recv()
	l.address = addressOf(l.stream.Context())
	if err != nil {
		return nil, err
	}
	if first.GetWelcome() == nil {
		return nil, errors.New("the first message of the server is not a Welcome")
	}
	return first.GetWelcome(), nil
}

// sendControl sends a message other than records. If it fails, receive fails too and ends
// the link.
func (l *link) sendControl(m *wire.AgentMessage) {
	if err := l.send(m); err != nil {
		l.uplink.log.Debug("cannot send a message, connection lost", "error", err)
	}
}

func (l *link) send(m *wire.AgentMessage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stream.Send(m)
}

// sendFromOutbox sends the changes of the outbox as far as the credit of the server allows, a few of
// them together.
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
		if err := collectChanges(ctx, changes); err != nil {
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
	return l.flushLocked(changes, l.writer.Flush)
}

// flushLocked sends what was written: changes, or a heartbeat.
func (l *link) flushLocked(changes []outbox.Change, flush func() ([]*wire.Data, error)) error {
	pieces, err := flush()
	if err != nil {
		return err
	}
	sent := 0
	for _, d := range pieces {
		if err := l.stream.Send(&wire.AgentMessage{Message: &wire.AgentMessage_Data{Data: d}}); err != nil {
			return err
		}
		sent += len(d.GetZstd())
	}
	l.uplink.cfg.Observer.Sent(changes, sent)
	return nil
}

// sendHeartbeats sends heartbeats. Before each, the agent finds out up to when its accounts are complete.
func (l *link) sendHeartbeats(ctx context.Context) error {
	ticker := time.NewTicker(l.heartbeatInterval)
	defer ticker.Stop()
	prepare := time.NewTimer(l.heartbeatInterval - l.uplink.proofLead())
	defer prepare.Stop()
	for {
		if err := l.sendHeartbeat(); err != nil {
			return err
		}
		if err := l.awaitHeartbeat(ctx, ticker, prepare); err != nil {
			return err
		}
	}
}

// awaitHeartbeat waits until the next heartbeat is due. When prepare fires, it makes the accounts find out up to when
// they are complete.
func (l *link) awaitHeartbeat(ctx context.Context, ticker *time.Ticker, prepare *time.Timer) error {
	lead := l.uplink.proofLead()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-prepare.C:
			if l.uplink.cfg.Prove != nil {
				l.uplink.cfg.Prove(lead)
			}
		case <-ticker.C:
			prepare.Reset(l.heartbeatInterval - lead)
			return nil
		case <-l.uplink.heartbeatWanted:
			return pause(ctx, minHeartbeatPause)
		}
	}
}

// minHeartbeatPause is the shortest pause before a heartbeat that SendHeartbeat asks for.
const minHeartbeatPause = 300 * time.Millisecond

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// SendHeartbeat sends a heartbeat soon, because what it would say about accounts has changed. It does not
// block.
func (u *Uplink) SendHeartbeat() {
	select {
	case u.heartbeatWanted <- struct{}{}:
	default:
	}
}

// checkHeartbeats fails as soon as the server has sent nothing for three heartbeats. It is separate
// from sendHeartbeats, which may block while the server has no room.
func (l *link) checkHeartbeats(ctx context.Context) error {
	limit := 3 * l.heartbeatInterval
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case now := <-timer.C:
			remaining := limit - now.Sub(time.Unix(0, l.lastReceived.Load()))
			if remaining <= 0 {
				return errHeartbeatTimeout
			}
			timer.Reset(remaining)
		}
	}
}

// idleAfterHeartbeats is after how many heartbeats without a change a stream is idle. Both
// sides free the compression state of an idle stream, because it takes much memory.
const idleAfterHeartbeats = 3

func (l *link) sendHeartbeat() error {
	var accounts []AccountFreshness
	freshness := l.uplink.cfg.Freshness
	if freshness != nil {
		accounts = freshness(time.Now()) // before PendingSince, so that what is proven to be read is in the outbox, or sent
	}
	now := time.Now()
	heartbeat := l.newHeartbeat(l.uplink.box.PendingSince(), now)
	if freshness != nil {
		l.ages.addTo(heartbeat, accounts, now)
	}
	rec, err := wire.EncodeStep(&wire.Record_Heartbeat{Heartbeat: heartbeat})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writer.Write(rec); err != nil {
		return err
	}
	l.idleHeartbeats++
	if l.idleHeartbeats > idleAfterHeartbeats {
		return l.flushLocked(nil, l.writer.Close)
	}
	return l.flushLocked(nil, l.writer.Flush)
}

// newHeartbeat reports since when the oldest unsent change has waited.
func (l *link) newHeartbeat(pendingSince, now time.Time) *wire.AgentHeartbeat {
	last := l.lastHeartbeat.Load()
	return &wire.AgentHeartbeat{
		UnixMillis: pendingSince.UnixMilli(), AgeMillis: new(now.Sub(pendingSince).Milliseconds()),
		Stamp: last.number, HeldMillis: now.Sub(last.received).Milliseconds(), SentMillis: l.clock.elapsed().Milliseconds(),
	}
}

// receive passes the messages of the server to the handler.
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
	switch m := m.GetMessage().(type) {
	case *wire.ServerMessage_Heartbeat:
		return l.handleHeartbeat(m.Heartbeat)
	case *wire.ServerMessage_Drain:
		l.report(newDrained(l.id, m.Drain))
	default:
		if l.isServing.Load() { // before, no account is registered over this connection
			l.handleReport(m)
		}
	}
	return nil
}

func (l *link) handleHeartbeat(h *wire.Heartbeat) error {
	l.clock.answered(h.GetAgentMillis(), h.GetAgentRead())
	if err := l.clock.received(h.GetStamp()); err != nil {
		return err // a new connection can tell the time again
	}
	l.lastHeartbeat.Store(&serverHeartbeat{number: h.GetStamp(), received: time.Now()})
	l.setAliveInterval(time.Duration(h.GetAliveMillis()) * time.Millisecond)
	return nil
}

// handleReport handles what is about the accounts.
func (l *link) handleReport(m any) {
	u := l.uplink
	switch m := m.(type) {
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
	case *wire.ServerMessage_VerifyAnswer:
		u.handler.VerifyAnswered(toVerifyAnswer(m.VerifyAnswer))
	}
}

func newDrained(id connectionID, d *wire.Drain) drained {
	e := drained{id: id, reason: d.GetReason(), staysOpen: d.GetStaysOpen()}
	if d.AfterMillis != nil {
		e.after = new(boundedMillis(int64(d.GetAfterMillis())))
	}
	return e
}

func toVerifyAnswer(m *wire.VerifyAnswer) VerifyAnswer {
	a := VerifyAnswer{Account: vedette.AccountName(m.GetAccount()), Feed: wire.ToFeed(m.GetFeed()), ID: m.GetId(), Buckets: m.GetBuckets(),
		Digests: m.GetDigests(), NameHashes: m.GetNameHashes(), Names: m.GetNames(), Refusal: m.GetRefusal()}
	if len(a.Digests) != len(a.NameHashes) && a.Refusal == "" {
		a.Refusal = "the server's answer is not valid"
	}
	return a
}
