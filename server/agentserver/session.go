package agentserver

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
	"github.com/vedette-io/vedette/server/assignment"
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
	server   *Server
	token    string // by which the agent's other streams name this session
	stream   grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]
	out      *outbound
	pieces   chan *wire.Data // closed by receive
	share    *memoryShare    // of the gate's memory
	unstored *unstoredRecords
	peer     string // the client certificate's digest, which its other streams must have too
	cancel   context.CancelCauseFunc
	member   *assignment.Member // set before joined is closed
	joined   chan struct{}
	ctx      context.Context // the session's, for work that answers of the roster cause
	log      *slog.Logger

	sessionAccounts
	registrations      *registrationQueue
	welcomedAt         time.Time                       // when Welcome was sent, just before
	operations         atomic.Pointer[operationStream] // nil while the agent takes no operations
	hasOperationStream atomic.Bool                     // it has a stream of operations

	receivingSince atomic.Int64 // when receive began to wait, nanoseconds; 0 while it does not wait
}

func newSession(g *Server, stream grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]) *session {
	s := &session{server: g, token: rand.Text(), joined: make(chan struct{}), stream: stream, pieces: make(chan *wire.Data), sessionAccounts: newSessionAccounts(), registrations: newRegistrationQueue(), log: g.log}
	s.ctx, s.cancel = context.WithCancelCause(stream.Context())
	s.share, s.unstored = g.memory.open(sourceOf(s.ctx), s.cancel), g.recordBudget.open(sourceOf(s.ctx))
	s.out, s.peer = newOutbound(s.share), certificateDigest(s.ctx)
	return s
}

var errHeartbeatTimeout = errors.New("no message from the agent for three heartbeat intervals")

func (s *session) run() error {
	defer s.cancel(nil)
	if err := s.share.reserveWithin(s.ctx, sessionMemory, sessionMemoryTimeout); err != nil {
		return s.server.logRejection(s.ctx, statusOf(err))
	}
	hello, err := s.handshake()
	if err != nil {
		return s.server.logRejection(s.ctx, err)
	}
	s.log = s.log.With("agent", hello.GetAgentId())
	group, ctx := errgroup.WithContext(s.ctx)
	s.ctx = ctx
	s.member = s.server.assigner.Join(agentFromHello(hello), s.assign)
	close(s.joined)
	s.log.Info("agent connected", "version", hello.GetAgentVersion())
	pipeline := s.server.ingest.NewPipeline(sourceOf(s.ctx), s, s.log)
	group.Go(func() error { return pipeline.Run(ctx) })
	group.Go(func() error { return s.decode(ctx, pipeline) })
	group.Go(func() error { return s.out.run(ctx, s.stream.Send) })
	group.Go(func() error { return s.sendHeartbeats(ctx) })
	group.Go(func() error { return s.registrations.run(ctx, group, s.log) })
	group.Go(func() error { return s.receive(ctx) })
	return s.end(group)
}

func agentFromHello(h *wire.Hello) assignment.Agent {
	return assignment.Agent{ID: vedette.AgentID(h.GetAgentId()), Version: h.GetAgentVersion(), Hostname: h.GetHostname(), ZoneID: h.GetZoneId(), Connected: time.Now()}
}

// end ends the session: the accounts are given on at once, so that those who
// stand by can take over, before the goroutines that may hang in the database
// or the network are waited for.
func (s *session) end(group *errgroup.Group) error {
	<-s.ctx.Done()
	s.share.close() // others need not wait for our database
	cause := context.Cause(s.ctx)
	cleanupCtx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 10*time.Second)
	defer cancel()
	s.member.Leave(cleanupCtx)
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
	if errors.Is(err, errHeartbeatTimeout) {
		return status.Error(codes.DeadlineExceeded, err.Error())
	}
	return status.Error(codes.Internal, "internal error; the server's log has the details")
}

// handshake exchanges Hello and Welcome.
func (s *session) handshake() (*wire.Hello, error) {
	first, err := receiveFirst(s.ctx, s.stream.Recv, s.server.cfg.HelloTimeout)
	if err != nil {
		return nil, err
	}
	hello := first.GetHello()
	if err := checkHello(hello); err != nil {
		return nil, err
	}
	protocol, ok := wire.NegotiateProtocol(hello.GetOldestProtocol(), hello.GetNewestProtocol())
	if !ok {
		return nil, status.Errorf(codes.FailedPrecondition,
			"agent %s (version %s) supports protocols %d to %d and this server (version %s) supports %d to %d: upgrade the older of the two",
			hello.GetAgentId(), hello.GetAgentVersion(), hello.GetOldestProtocol(), hello.GetNewestProtocol(),
			s.server.cfg.Version, wire.OldestProtocol, wire.NewestProtocol)
	}
	s.welcomedAt = time.Now()
	return hello, s.stream.Send(&wire.ServerMessage{Message: &wire.ServerMessage_Welcome{Welcome: s.newWelcome(protocol)}})
}

func (s *session) newWelcome(protocol uint32) *wire.Welcome {
	g, token := s.server, s.token
	if g.dispatch == nil {
		token = ""
	}
	return &wire.Welcome{Session: token,
		Protocol: protocol, ServerId: string(g.cfg.ServerID), ServerVersion: g.cfg.Version,
		HeartbeatSeconds: uint32(max(1, g.cfg.Heartbeat/time.Second)), CreditBytes: uint32(g.cfg.CreditBytes),
		Kinds: g.cfg.Kinds, Projections: wire.FromProjections(g.cfg.Projections), Annotations: vedette.HeaderAnnotations,
	}
}

// receive hands messages on. It is what the agent waits for when the lane is
// full: what is not received here fills HTTP/2's window, and no more.
func (s *session) receive(ctx context.Context) error {
	defer close(s.pieces)
	for {
		s.receivingSince.Store(time.Now().UnixNano())
		m, err := s.stream.Recv()
		if err != nil {
			return err
		}
		s.receivingSince.Store(0)
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
	case *wire.AgentMessage_AccountError:
		s.setAccountError(m.AccountError)
	case *wire.AgentMessage_Deregister:
		s.deregister(vedette.AccountName(m.Deregister.GetAccount()))
	}
	return nil
}

// sendHeartbeats lets the agent hear us, and listens for it. Time in which we did not
// listen, because the database had no room, is not the agent's silence.
func (s *session) sendHeartbeats(ctx context.Context) error {
	ticker := time.NewTicker(s.server.cfg.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case now := <-ticker.C:
			receiving := s.receivingSince.Load()
			if receiving != 0 && now.Sub(time.Unix(0, receiving)) > 3*s.server.cfg.Heartbeat {
				return errHeartbeatTimeout
			}
			s.out.put(&wire.ServerMessage{Message: &wire.ServerMessage_Heartbeat{Heartbeat: &wire.Heartbeat{
				UnixMillis: now.UnixMilli(), Stamp: now.Sub(s.welcomedAt).Milliseconds()}}})
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

// Revoke implements the lane's replies.
func (s *session) Revoke(account vedette.AccountName, term vedette.Term, reason error) {
	s.member.Revoke(s.ctx, account, term, reason)
}

// SetFresh implements the lane's replies.
func (s *session) SetFresh(at time.Time) { s.member.SetFreshness(at) }

// Stalled implements the lane's replies.
func (s *session) Stalled(account vedette.AccountName, reason error) {
	s.member.Stall(account, reason)
}

// Resumed implements the lane's replies.
func (s *session) Resumed(account vedette.AccountName) { s.member.Resume(account) }
