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
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/wire"
)

// session is the connection of one agent:
//
//	handshake ──Hello/Welcome──> serving ──error, silence or end of stream──> ended
//
// While it serves, six goroutines work for it: they receive messages, decode records into
// the pipeline, commit them, register accounts, send heartbeats and send messages. When
// one of them ends, all end.
type session struct {
	server   *Server
	token    string // identifies the session on the agent's other streams
	stream   grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]
	out      *outbound
	pieces   chan *wire.Data // closed by receive
	share    *memoryShare    // of the server's memory
	unstored *unstoredRecords
	peer     string // the digest of the client certificate; the agent's other streams must have the same
	cancel   context.CancelCauseFunc
	member   *assigner.Member // set before joined is closed
	joined   chan struct{}
	ctx      context.Context // ends with the session
	log      *slog.Logger

	sessionAccounts
	registrations      *registrationQueue
	welcomedAt         time.Time                       // just before Welcome was sent
	lastRead           atomic.Pointer[readHeartbeat]   // nil before the first
	operations         atomic.Pointer[operationStream] // nil while the agent has no operation stream
	hasOperationStream atomic.Bool                     // true while the agent has an operation stream
	kinds              []string                        // in Welcome; nil before; guarded by server.mu
}

func newSession(g *Server, stream grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]) *session {
	s := &session{server: g, token: rand.Text(), joined: make(chan struct{}), stream: stream, pieces: make(chan *wire.Data),
		sessionAccounts: newSessionAccounts(), registrations: newRegistrationQueue()}
	s.ctx, s.cancel = context.WithCancelCause(sqldb.WithSource(stream.Context(), sourceOf(stream.Context())))
	s.log = g.sessionLogs.Logger(sourceOf(s.ctx))
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
	s.member = s.server.assigner.Join(agentFromHello(hello, sourceOf(s.ctx)), s.assign)
	close(s.joined)
	s.log.Info("agent connected", "version", hello.GetAgentVersion())
	pipeline := s.server.ingest.NewPipeline(sourceOf(s.ctx), s, s.log)
	group.Go(func() error { return pipeline.Run(ctx) })
	group.Go(func() error { return s.decode(ctx, pipeline) })
	group.Go(func() error { return s.out.run(ctx, s.stream.Send) })
	group.Go(func() error { return s.sendHeartbeats(ctx) })
	group.Go(func() error { return s.registrations.run(ctx, group, s.log) })
	group.Go(func() error { return s.receive(ctx) })
	return s.end()
}

func agentFromHello(h *wire.Hello, source string) assignment.Agent {
	return assignment.Agent{ID: vedette.AgentID(h.GetAgentId()), Version: h.GetAgentVersion(), Hostname: h.GetHostname(),
		ZoneID: h.GetZoneId(), Process: h.GetProcess(), Replicas: int(min(h.GetReplicas(), maxReplicas)), Connected: time.Now(), Source: source}
}

// end ends the session. It first returns the accounts, so that standbys can take over
// at once, and only then waits for the goroutines, which may be blocked by the database
// or the network.
func (s *session) end() error {
	<-s.ctx.Done()
	s.share.close() // first, so that other agents do not wait for our database
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

// statusOf converts errors to gRPC statuses.
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
		Kinds: g.kindsFor(s), Projections: wire.FromProjections(g.cfg.Projections), Annotations: vedette.HeaderAnnotations,
	}
}

// receive passes messages on. If the pipeline is full, receive blocks, and HTTP/2's
// flow control stops the agent.
func (s *session) receive(ctx context.Context) error {
	defer close(s.pieces)
	for {
		s.member.BeginReceive()
		m, err := s.stream.Recv()
		if err != nil {
			return err
		}
		s.member.EndReceive()
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
	case *wire.AgentMessage_ConfigStatus:
		s.member.SetConfig(toConfigStatus(m.ConfigStatus, time.Now()))
	case *wire.AgentMessage_Conditions:
		s.setConditions(m.Conditions, time.Now())
	case *wire.AgentMessage_Deregister:
		s.deregister(vedette.AccountName(m.Deregister.GetAccount()))
	case *wire.AgentMessage_Alive:
		s.member.SetAliveInterval(time.Duration(m.Alive.GetIntervalMillis()) * time.Millisecond)
	}
	return nil
}

// Ack implements the responder of a pipeline.
func (s *session) Ack(n uint64) error {
	s.unstored.stored(n)
	s.out.put(&wire.ServerMessage{Message: &wire.ServerMessage_Ack{Ack: &wire.Ack{Records: n}}})
	return nil
}

// Index implements the responder of a pipeline.
func (s *session) Index(account vedette.AccountName, term vedette.Term, feed vedette.Feed, digests []uint64, last bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terms[account] != term {
		return nil // the agent would take it for the answer to the Begin of its next term
	}
	s.out.put(&wire.ServerMessage{Message: &wire.ServerMessage_Index{Index: &wire.Index{
		Account: string(account), Feed: wire.FromFeed(feed), Digests: digests, Last: last,
	}}})
	return nil
}

// VerifyAnswer implements the responder of a pipeline.
func (s *session) VerifyAnswer(account vedette.AccountName, feed vedette.Feed, a ingest.VerifyAnswer) error {
	m := &wire.VerifyAnswer{Account: string(account), Feed: wire.FromFeed(feed), Id: a.ID, Buckets: a.Buckets, Names: a.Names,
		Refusal: a.Refusal}
	for _, o := range a.Objects {
		m.Digests, m.NameHashes = append(m.Digests, o.Digest), append(m.NameHashes, o.NameHash)
	}
	s.out.put(&wire.ServerMessage{Message: &wire.ServerMessage_VerifyAnswer{VerifyAnswer: m}})
	return nil
}

// Revoke implements the responder of a pipeline. The records that the pipeline discards are acknowledged afterwards, by
// number, and the agent takes them for stored unless it knows that the term has ended. So it is told now, if the
// account is just being assigned anew: the store has the next term before the agent does. All other discards are of
// terms whose end the agent knows, because the session changes the term and queues the assignment under one lock.
// testdata/assigned-slowly.txt fails without it.
func (s *session) Revoke(account vedette.AccountName, term vedette.Term, reason error) {
	s.member.Revoke(s.ctx, account, term, reason)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terms[account] == term {
		s.assignLocked(assignment.Assignment{Account: account, Role: assignment.Standby})
	}
}

// SetFresh implements the responder of a pipeline.
func (s *session) SetFresh(at time.Time, ages map[vedette.AccountName]vedette.AccountAge) {
	if ages == nil {
		s.member.SetFreshness(at)
		return
	}
	s.member.SetAccountFreshness(at, ages)
}

// Stalled implements the responder of a pipeline.
func (s *session) Stalled(account vedette.AccountName, reason error) {
	s.member.Stall(account, reason)
}

// Resumed implements the responder of a pipeline.
func (s *session) Resumed(account vedette.AccountName) { s.member.Resume(account) }
