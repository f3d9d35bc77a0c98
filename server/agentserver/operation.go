package agentserver

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/wire"
)

// operationsService is the gate as gRPC's Operations service sees it.
type operationsService struct {
	wire.UnimplementedOperationsServer
	*Server
}

// operationStream is an agent's stream of operations.
type operationStream struct {
	*dispatch.AttachedAgent
	share      *memoryShare // of the session's memory
	mu         sync.Mutex
	queue      []*wire.OperationsDown
	queueBytes int // of waiting
	ready      chan struct{}
}

// Serve gives an agent operations, and takes their outcomes. gRPC calls it.
func (o operationsService) Serve(stream grpc.BidiStreamingServer[wire.OperationsUp, wire.OperationsDown]) error {
	first, err := receiveFirst(stream.Context(), stream.Recv, o.cfg.HelloTimeout)
	if err != nil {
		return err
	}
	attach := first.GetAttach()
	if len(attach.GetProcess()) > maxNameBytes {
		return status.Errorf(codes.InvalidArgument, "the name of the process has %d bytes; %d are the most", len(attach.GetProcess()), maxNameBytes)
	}
	s := o.awaitSession(stream.Context(), attach.GetSession())
	if s == nil {
		return errNoSession
	}
	if !s.hasOperationStream.CompareAndSwap(false, true) {
		return errDuplicateStream
	}
	defer s.hasOperationStream.Store(false)
	ops := &operationStream{ready: make(chan struct{}, 1), share: s.share}
	ops.AttachedAgent = o.dispatch.Attach(s.member, attach.GetProcess(), ops)
	defer ops.Detach()
	s.operations.Store(ops)
	defer s.operations.Store(nil)
	ctxWithSession, stop := s.withSession(stream.Context())
	defer stop()
	group, ctx := errgroup.WithContext(ctxWithSession)
	group.Go(func() error { return ops.send(ctx, stream.Send) })
	group.Go(func() error { return ops.receive(stream) })
	<-ctx.Done() // a stream that waits in Recv ends with its handler, not with its group
	return statusOf(context.Cause(ctx))
}

var (
	errNoSession       = status.Error(codes.FailedPrecondition, "the stream names no session of this server; connect again")
	errSessionEnded    = status.Error(codes.Canceled, "the agent's session has ended; connect again")
	errDuplicateStream = status.Error(codes.FailedPrecondition, "the session has a stream of operations already")
)

// withSession returns a context that ends with the session too.
func (s *session) withSession(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(errSessionEnded) })
	return ctx, func() { stop(); cancel(nil) }
}

// awaitSession finds an agent's session by the name that its Welcome gave it, for a stream
// of the same agent. The agent may be quicker than the roster, which it is waited
// for; nil where there is no such session.
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
			o.HandleOutcome(wire.ToOutcome(out))
		}
	}
}

// Send implements dispatch.Line.
func (o *operationStream) Send(op vedette.Operation) {
	encoded, err := wire.FromOperation(op, time.Now())
	if err != nil {
		go o.HandleOutcome(encodingFailed(op.ID, err))
		return
	}
	o.put(&wire.OperationsDown{Message: &wire.OperationsDown_Operation{Operation: encoded}})
}

// encodingFailed ends an operation that the protocol has no words for.
func encodingFailed(id vedette.OperationID, err error) vedette.Outcome {
	out := vedette.Outcome{ID: id, State: vedette.Failed, Status: http.StatusInternalServerError, Reason: "InternalError", Message: err.Error()}
	if vedette.KindOf(err) == vedette.Invalid {
		out.Status, out.Reason = http.StatusBadRequest, "BadRequest"
	}
	return out
}

// Cancel implements dispatch.Line.
func (o *operationStream) Cancel(id vedette.OperationID) {
	o.put(&wire.OperationsDown{Message: &wire.OperationsDown_Cancel{Cancel: &wire.Cancel{Id: string(id)}}})
}

// Forget implements dispatch.Line.
func (o *operationStream) Forget(id vedette.OperationID) {
	o.put(&wire.OperationsDown{Message: &wire.OperationsDown_Forget{Forget: &wire.Forget{Id: string(id)}}})
}

func (o *operationStream) put(m *wire.OperationsDown) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(o.queue, m)
	o.queueBytes += sizeOf(m)
	o.share.grow(sizeOf(m))
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

func (o *operationStream) take() (messages []*wire.OperationsDown, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	messages, bytes = o.queue, o.queueBytes
	o.queue, o.queueBytes = nil, 0
	return messages, bytes
}

func (o *operationStream) send(ctx context.Context, send func(*wire.OperationsDown) error) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.ready:
		}
		messages, bytes := o.take()
		for _, m := range messages {
			if err := o.sendParts(m, send); err != nil {
				return err
			}
		}
		o.share.release(bytes)
	}
}

// sendParts sends a message, in parts where it is big. One that can't be encoded ends
// its operation and nothing else.
func (o *operationStream) sendParts(m *wire.OperationsDown, send func(*wire.OperationsDown) error) error {
	parts, err := wire.Split(m)
	if err != nil {
		o.HandleOutcome(encodingFailed(vedette.OperationID(m.GetOperation().GetId()), err))
		return nil
	}
	for _, part := range parts {
		if err := send(part); err != nil {
			return err
		}
	}
	return nil
}
