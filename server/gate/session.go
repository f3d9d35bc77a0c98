package gate

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/roster"
	"github.com/vedette-io/vedette/wire"
)

// session is one agent's visit:
//
//	greeting ──Hello/Welcome──> serving ──error, silence or end of stream──> left
//
// While it serves, five goroutines share the work: one receives messages, one
// decodes records into the lane, the lane commits them, one asks the roster for roles,
// one sends. Whichever
// ends first ends the others.
type session struct {
	gate     *Gate
	token    string // by which the agent's other streams name this session
	stream   grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]
	out      *outbound
	pieces   chan *wire.Data // closed by receive
	share    *share          // of the gate's memory
	unstored *unstored
	peer     string // the client certificate's digest, which its other streams must have too
	hangUp   context.CancelCauseFunc
	member   *roster.Member // set before joined is closed
	joined   chan struct{}
	ctx      context.Context // the session's, for work that answers of the roster cause
	log      *slog.Logger

	accounts
	registrations *registrations
	welcomed      time.Time             // when Welcome was sent, just before
	visit         atomic.Pointer[visit] // nil while the agent takes no operations
	serving       atomic.Bool           // it has a stream of operations

	waitingSince atomic.Int64 // when receive began to wait, nanoseconds; 0 while it does not wait
}

func newSession(g *Gate, stream grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]) *session {
	s := &session{gate: g, token: rand.Text(), joined: make(chan struct{}), stream: stream, pieces: make(chan *wire.Data), accounts: newAccounts(), registrations: newRegistrations(), log: g.log}
	s.ctx, s.hangUp = context.WithCancelCause(stream.Context())
	s.share, s.unstored = g.memory.open(sourceOf(s.ctx), s.hangUp), g.inflight.open(sourceOf(s.ctx))
	s.out, s.peer = newOutbound(s.share), identityOf(s.ctx)
	return s
}

var errSilent = errors.New("the agent was not heard for three pulses")

func (s *session) run() error {
	defer s.hangUp(nil)
	if err := s.share.reserveWithin(s.ctx, sessionMemory, sessionWait); err != nil {
		return s.gate.turnedAway(s.ctx, statusOf(err))
	}
	hello, err := s.greet()
	if err != nil {
		return s.gate.turnedAway(s.ctx, err)
	}
	s.log = s.log.With("agent", hello.GetAgentId())
	group, ctx := errgroup.WithContext(s.ctx)
	s.ctx = ctx
	s.member = s.gate.roster.Join(agentOf(hello), s.assign)
	close(s.joined)
	s.log.Info("agent connected", "version", hello.GetAgentVersion())
	lane := s.gate.ingest.Lane(sourceOf(s.ctx), s, s.log)
	group.Go(func() error { return lane.Run(ctx) })
	group.Go(func() error { return s.decode(ctx, lane) })
	group.Go(func() error { return s.out.run(ctx, s.stream.Send) })
	group.Go(func() error { return s.pulse(ctx) })
	group.Go(func() error { return s.registrations.run(ctx, group, s.log) })
	group.Go(func() error { return s.receive(ctx) })
	return s.leave(group)
}

func agentOf(h *wire.Hello) roster.Agent {
	return roster.Agent{ID: vedette.AgentID(h.GetAgentId()), Version: h.GetAgentVersion(), Hostname: h.GetHostname(), ZoneID: h.GetZoneId(), Connected: time.Now()}
}

// leave ends the session: the accounts are given on at once, so that those who
// stand by can take over, before the goroutines that may hang in the database
// or the network are waited for.
func (s *session) leave(group *errgroup.Group) error {
	<-s.ctx.Done()
	s.share.close() // others need not wait for our database
	cause := context.Cause(s.ctx)
	after, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 10*time.Second)
	defer cancel()
	s.member.Leave(after)
	if errors.Is(cause, io.EOF) || status.Code(cause) == codes.Canceled || errors.Is(cause, context.Canceled) {
		s.log.Info("agent disconnected")
		return nil
	}
	s.log.Warn("agent lost", "error", cause)
	return statusOf(cause)
}

// statusOf is the one table from our errors to gRPC's.
func statusOf(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	switch vedette.KindOf(err) {
	case vedette.Invalid:
		return status.Error(codes.InvalidArgument, err.Error())
	case vedette.Unavailable:
		return status.Error(codes.Unavailable, err.Error())
	}
	if errors.Is(err, errSilent) {
		return status.Error(codes.DeadlineExceeded, err.Error())
	}
	return status.Error(codes.Internal, "internal error; the server's log has the details")
}

// greet exchanges Hello and Welcome.
func (s *session) greet() (*wire.Hello, error) {
	first, err := firstOf(s.ctx, s.stream.Recv, s.gate.cfg.Greeting)
	if err != nil {
		return nil, err
	}
	hello := first.GetHello()
	if err := checkHello(hello); err != nil {
		return nil, err
	}
	protocol, ok := wire.Agree(hello.GetOldestProtocol(), hello.GetNewestProtocol())
	if !ok {
		return nil, status.Errorf(codes.FailedPrecondition,
			"agent %s (version %s) speaks protocols %d to %d and this server (version %s) speaks %d to %d; upgrade the older of the two",
			hello.GetAgentId(), hello.GetAgentVersion(), hello.GetOldestProtocol(), hello.GetNewestProtocol(),
			s.gate.cfg.Version, wire.OldestProtocol, wire.Protocol)
	}
	s.welcomed = time.Now()
	return hello, s.stream.Send(&wire.ServerMessage{Message: &wire.ServerMessage_Welcome{Welcome: s.welcome(protocol)}})
}

func (s *session) welcome(protocol uint32) *wire.Welcome {
	g, token := s.gate, s.token
	if g.dispatch == nil {
		token = ""
	}
	return &wire.Welcome{Session: token,
		Protocol: protocol, ServerId: string(g.cfg.Server), ServerVersion: g.cfg.Version,
		PulseSeconds: uint32(max(1, g.cfg.Pulse/time.Second)), CreditBytes: uint32(g.cfg.Credit),
		Kinds: g.cfg.Kinds, Lifts: wire.FromLifts(g.cfg.Lifts), Annotations: vedette.LiftedAnnotations,
	}
}

// receive hands messages on. It is what the agent waits for when the lane is
// full: what is not received here fills HTTP/2's window, and no more.
func (s *session) receive(ctx context.Context) error {
	defer close(s.pieces)
	for {
		s.waitingSince.Store(time.Now().UnixNano())
		m, err := s.stream.Recv()
		if err != nil {
			return err
		}
		s.waitingSince.Store(0)
		if err := s.handle(ctx, m); err != nil {
			return err
		}
	}
}

func (s *session) handle(ctx context.Context, m *wire.AgentMessage) error {
	switch m := m.GetMessage().(type) {
	case *wire.AgentMessage_Data:
		select {
		case s.pieces <- m.Data:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	case *wire.AgentMessage_Register:
		s.register(m.Register)
	case *wire.AgentMessage_Trouble:
		s.trouble(m.Trouble)
	case *wire.AgentMessage_Deregister:
		s.deregister(vedette.AccountName(m.Deregister.GetAccount()))
	}
	return nil
}

// pulse lets the agent hear us, and listens for it. Time in which we did not
// listen, because the database had no room, is not the agent's silence.
func (s *session) pulse(ctx context.Context) error {
	tick := time.NewTicker(s.gate.cfg.Pulse)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case now := <-tick.C:
			since := s.waitingSince.Load()
			if since != 0 && now.Sub(time.Unix(0, since)) > 3*s.gate.cfg.Pulse {
				return errSilent
			}
			s.out.put(&wire.ServerMessage{Message: &wire.ServerMessage_Pulse{Pulse: &wire.Pulse{
				UnixMillis: now.UnixMilli(), Stamp: now.Sub(s.welcomed).Milliseconds()}}})
		}
	}
}

// Ack implements the lane's replies.
func (s *session) Ack(n uint64) error {
	s.unstored.stored(n)
	s.out.put(&wire.ServerMessage{Message: &wire.ServerMessage_Ack{Ack: &wire.Ack{Records: n}}})
	return nil
}

// Index implements the lane's replies.
func (s *session) Index(account vedette.AccountName, feed vedette.Feed, digests []uint64, last bool) error {
	s.out.put(&wire.ServerMessage{Message: &wire.ServerMessage_Index{Index: &wire.Index{
		Account: string(account), Feed: wire.FromFeed(feed), Digests: digests, Last: last,
	}}})
	return nil
}

// Void implements the lane's replies.
func (s *session) Void(account vedette.AccountName, term vedette.Term, reason error) {
	s.member.Void(s.ctx, account, term, reason)
}

// Fresh implements the lane's replies.
func (s *session) Fresh(at time.Time) { s.member.SetFresh(at) }

// Stalled implements the lane's replies.
func (s *session) Stalled(account vedette.AccountName, reason error) {
	s.member.Stall(account, reason)
}

// Resumed implements the lane's replies.
func (s *session) Resumed(account vedette.AccountName) { s.member.Resume(account) }
