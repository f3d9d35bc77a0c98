package agentserver

import (
	"context"
	"io"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/wire"
)

// operationsService implements the gRPC service Operations.
type operationsService struct {
	wire.UnimplementedOperationsServer
	*Server
}

// attachedAgent accepts the outcomes of one agent's operations. The dispatcher
// implements it.
type attachedAgent interface {
	Claim(id vedette.OperationID, isLog bool) (release func(), ok bool)
	HandleOutcome(out vedette.Outcome) bool
	// PassesOn reports whether the operation's outcome goes to another server as it is.
	PassesOn(id vedette.OperationID) bool
	HandleEncoded(id vedette.OperationID, out io.ReadCloser) bool
}

// operationStream is an agent's stream of operations and outcomes.
type operationStream struct {
	agent attachedAgent
	queue *operationQueue
	share *memoryShare // of the session's memory
}

// Serve sends operations to an agent and receives their outcomes. gRPC calls it.
func (o operationsService) Serve(stream grpc.BidiStreamingServer[wire.OperationsUp, wire.OperationsDown]) error {
	first, err := receiveFirst(stream.Context(), stream.Recv, o.cfg.HelloTimeout)
	if err != nil {
		return err
	}
	attach := first.GetAttach()
	if len(attach.GetProcess()) > maxNameBytes {
		return status.Errorf(codes.InvalidArgument, "the process name has %d bytes; the maximum is %d", len(attach.GetProcess()), maxNameBytes)
	}
	s := o.awaitSession(stream.Context(), attach.GetSession())
	if s == nil {
		return errNoSession
	}
	if !s.hasOperationStream.CompareAndSwap(false, true) {
		return errDuplicateStream
	}
	defer s.hasOperationStream.Store(false)
	queue := newOperationQueue(s.share, s.welcomedAt)
	agent := o.dispatch.Attach(s.member, attach.GetProcess(), queue)
	defer agent.Detach()
	ops := &operationStream{agent: agent, queue: queue, share: s.share}
	s.operations.Store(ops)
	defer s.operations.Store(nil)
	ctxWithSession, stop := s.withSession(stream.Context())
	defer stop()
	group, ctx := errgroup.WithContext(ctxWithSession)
	group.Go(func() error { return ops.send(ctx, stream.Send) })
	group.Go(func() error { return ops.receive(stream) })
	<-ctx.Done() // not group.Wait, because Recv ends only when this handler returns
	return statusOf(context.Cause(ctx))
}

var (
	errNoSession       = status.Error(codes.FailedPrecondition, "the stream does not name a session of this server: reconnect")
	errSessionEnded    = status.Error(codes.Canceled, "the agent's session has ended: reconnect")
	errDuplicateStream = status.Error(codes.FailedPrecondition, "the session already has an operation stream")
)

// withSession returns a context that also ends with the session.
func (s *session) withSession(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(errSessionEnded) })
	return ctx, func() { stop(); cancel(nil) }
}

// awaitSession returns the session that a stream names, if both belong to the same
// agent; nil otherwise. It waits until the session has joined, because an agent may
// open the stream before.
func (srv *Server) awaitSession(ctx context.Context, token string) *session {
	s := srv.lookupSession(token)
	if s == nil || s.peer != certificateDigest(ctx) {
		return nil
	}
	select {
	case <-s.joined:
		return s
	case <-ctx.Done():
		return nil
	}
}

func (srv *Server) lookupSession(token string) *session {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.sessions[token]
}

func (o *operationStream) receive(stream grpc.BidiStreamingServer[wire.OperationsUp, wire.OperationsDown]) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if out := m.GetOutcome(); out != nil {
			o.agent.HandleOutcome(wire.ToOutcome(out))
		}
	}
}

func (o *operationStream) send(ctx context.Context, send func(*wire.OperationsDown) error) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.queue.ready:
		}
		messages, bytes := o.queue.take()
		for _, m := range messages {
			if err := o.sendParts(m, send); err != nil {
				return err
			}
		}
		o.share.release(bytes)
	}
}

// sendParts sends a message, in parts if it is large. If the message cannot be encoded,
// only its operation fails.
func (o *operationStream) sendParts(m *wire.OperationsDown, send func(*wire.OperationsDown) error) error {
	parts, err := wire.Split(m)
	if err != nil {
		o.agent.HandleOutcome(dispatch.EncodingFailed(vedette.OperationID(m.GetOperation().GetId()), err))
		return nil
	}
	for _, part := range parts {
		if err := send(part); err != nil {
			return err
		}
	}
	return nil
}
