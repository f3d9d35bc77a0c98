package gate

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
	*Gate
}

// visit is an agent's stream of operations.
type visit struct {
	*dispatch.Visit
	share   *share // of the session's memory
	mu      sync.Mutex
	waiting []*wire.OperationsDown
	bytes   int // of waiting
	ready   chan struct{}
}

// Serve gives an agent operations, and takes their outcomes. gRPC calls it.
func (o operationsService) Serve(stream grpc.BidiStreamingServer[wire.OperationsUp, wire.OperationsDown]) error {
	first, err := firstOf(stream.Context(), stream.Recv, o.cfg.Greeting)
	if err != nil {
		return err
	}
	attach := first.GetAttach()
	if len(attach.GetProcess()) > maxName {
		return status.Errorf(codes.InvalidArgument, "the name of the process has %d bytes; %d are the most", len(attach.GetProcess()), maxName)
	}
	s := o.session(stream.Context(), attach.GetSession())
	if s == nil {
		return errNoSession
	}
	if !s.serving.CompareAndSwap(false, true) {
		return errTwoStreams
	}
	defer s.serving.Store(false)
	v := &visit{ready: make(chan struct{}, 1), share: s.share}
	v.Visit = o.dispatch.Attach(s.member, attach.GetProcess(), v)
	defer v.Leave()
	s.visit.Store(v)
	defer s.visit.Store(nil)
	during, end := s.during(stream.Context())
	defer end()
	group, ctx := errgroup.WithContext(during)
	group.Go(func() error { return v.send(ctx, stream.Send) })
	group.Go(func() error { return v.receive(stream) })
	<-ctx.Done() // a stream that waits in Recv ends with its handler, not with its group
	return statusOf(context.Cause(ctx))
}

var (
	errNoSession    = status.Error(codes.FailedPrecondition, "the stream names no session of this server; connect again")
	errSessionEnded = status.Error(codes.Canceled, "the agent's session has ended; connect again")
	errTwoStreams   = status.Error(codes.FailedPrecondition, "the session has a stream of operations already")
)

// during returns a context that ends with the session too.
func (s *session) during(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(errSessionEnded) })
	return ctx, func() { stop(); cancel(nil) }
}

// session finds an agent's session by the name that its Welcome gave it, for a stream
// of the same agent. The agent may be quicker than the roster, which it is waited
// for; nil where there is no such session.
func (g *Gate) session(ctx context.Context, token string) *session {
	s := g.named(token)
	if s == nil || s.peer != identityOf(ctx) {
		return nil
	}
	select {
	case <-s.joined:
		return s
	case <-ctx.Done():
		return nil
	}
}

func (g *Gate) named(token string) *session {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sessions[token]
}

func (v *visit) receive(stream grpc.BidiStreamingServer[wire.OperationsUp, wire.OperationsDown]) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if out := m.GetOutcome(); out != nil {
			v.Outcome(wire.ToOutcome(out))
		}
	}
}

// Send implements dispatch.Line.
func (v *visit) Send(op vedette.Operation) {
	encoded, err := wire.FromOperation(op, time.Now())
	if err != nil {
		go v.Outcome(unsendable(op.ID, err))
		return
	}
	v.put(&wire.OperationsDown{Message: &wire.OperationsDown_Operation{Operation: encoded}})
}

// unsendable ends an operation that the protocol has no words for.
func unsendable(id vedette.OperationID, err error) vedette.Outcome {
	out := vedette.Outcome{ID: id, State: vedette.Failed, Status: http.StatusInternalServerError, Reason: "InternalError", Message: err.Error()}
	if vedette.KindOf(err) == vedette.Invalid {
		out.Status, out.Reason = http.StatusBadRequest, "BadRequest"
	}
	return out
}

// Cancel implements dispatch.Line.
func (v *visit) Cancel(id vedette.OperationID) {
	v.put(&wire.OperationsDown{Message: &wire.OperationsDown_Cancel{Cancel: &wire.Cancel{Id: string(id)}}})
}

// Forget implements dispatch.Line.
func (v *visit) Forget(id vedette.OperationID) {
	v.put(&wire.OperationsDown{Message: &wire.OperationsDown_Forget{Forget: &wire.Forget{Id: string(id)}}})
}

func (v *visit) put(m *wire.OperationsDown) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waiting = append(v.waiting, m)
	v.bytes += sizeOf(m)
	v.share.grow(sizeOf(m))
	select {
	case v.ready <- struct{}{}:
	default:
	}
}

func (v *visit) take() (taken []*wire.OperationsDown, bytes int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	taken, bytes = v.waiting, v.bytes
	v.waiting, v.bytes = nil, 0
	return taken, bytes
}

func (v *visit) send(ctx context.Context, send func(*wire.OperationsDown) error) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-v.ready:
		}
		messages, bytes := v.take()
		for _, m := range messages {
			if err := v.sendParts(m, send); err != nil {
				return err
			}
		}
		v.share.release(bytes)
	}
}

// sendParts sends a message, in parts where it is big. One that can't be encoded ends
// its operation and nothing else.
func (v *visit) sendParts(m *wire.OperationsDown, send func(*wire.OperationsDown) error) error {
	parts, err := wire.Split(m)
	if err != nil {
		v.Outcome(unsendable(vedette.OperationID(m.GetOperation().GetId()), err))
		return nil
	}
	for _, part := range parts {
		if err := send(part); err != nil {
			return err
		}
	}
	return nil
}
