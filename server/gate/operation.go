package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	mu      sync.Mutex
	waiting []*wire.OperationsDown
	ready   chan struct{}
}

// Serve gives an agent operations, and takes their outcomes. gRPC calls it.
func (o operationsService) Serve(stream grpc.BidiStreamingServer[wire.OperationsUp, wire.OperationsDown]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	s := o.session(stream.Context(), first.GetAttach().GetSession())
	if s == nil {
		return errNoSession
	}
	v := &visit{ready: make(chan struct{}, 1)}
	v.Visit = o.dispatch.Attach(s.member, first.GetAttach().GetProcess(), v)
	defer v.Leave()
	s.visit.Store(v)
	defer s.visit.CompareAndSwap(v, nil)
	group, ctx := errgroup.WithContext(stream.Context())
	group.Go(func() error { return v.send(ctx, stream.Send) })
	group.Go(func() error { return v.receive(stream) })
	<-ctx.Done() // a stream that waits in Recv ends with its handler, not with its group
	return statusOf(context.Cause(ctx))
}

var errNoSession = status.Error(codes.FailedPrecondition, "the stream names no session of this server; connect again")

// session finds an agent's session by the name that its Welcome gave it. The
// agent may be quicker than the roster, which it is waited for; nil where there is
// no such session.
func (g *Gate) session(ctx context.Context, token string) *session {
	s := g.named(token)
	if s == nil {
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
		go v.Outcome(vedette.Outcome{ID: op.ID, State: vedette.Failed, Status: http.StatusInternalServerError, Reason: "InternalError", Message: err.Error()})
		return
	}
	v.put(&wire.OperationsDown{Message: &wire.OperationsDown_Operation{Operation: encoded}})
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
	select {
	case v.ready <- struct{}{}:
	default:
	}
}

func (v *visit) take() []*wire.OperationsDown {
	v.mu.Lock()
	defer v.mu.Unlock()
	taken := v.waiting
	v.waiting = nil
	return taken
}

func (v *visit) send(ctx context.Context, send func(*wire.OperationsDown) error) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-v.ready:
		}
		for _, m := range v.take() {
			parts, err := wire.Split(m)
			if err != nil {
				return err
			}
			for _, part := range parts {
				if err := send(part); err != nil {
					return err
				}
			}
		}
	}
}

// mostAnswer bounds an outcome: a list of some ten thousand objects.
const mostAnswer = 256 << 20

// Answer takes one outcome that is too big for the stream of all, or a log. gRPC
// calls it.
func (o operationsService) Answer(stream grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	s := o.session(stream.Context(), first.GetSession())
	if s == nil {
		return errNoSession
	}
	v := s.visit.Load()
	if v == nil {
		return errNoSession
	}
	id := vedette.OperationID(first.GetOperation())
	log := first.GetLog()
	reader, err := wire.NewAnswerReader(first, stream.Recv)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	defer reader.Close()
	if log {
		err = takeLog(v, id, reader)
	} else {
		err = takeOutcome(v, id, reader)
	}
	if err != nil {
		return err
	}
	return stream.SendAndClose(&wire.AnswerEnd{})
}

func takeOutcome(v *visit, id vedette.OperationID, r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, mostAnswer+1))
	if err != nil {
		return fmt.Errorf("read the outcome of %s: %w", id, err)
	}
	if len(b) > mostAnswer {
		v.Outcome(vedette.Outcome{ID: id, State: vedette.Failed, Status: http.StatusRequestEntityTooLarge, Reason: "TooLarge",
			Message: fmt.Sprintf("the answer has more than %d bytes; ask for less, by namespace or selector", mostAnswer)})
		return nil
	}
	var out wire.Outcome
	if err := wire.Unmarshal(b, &out); err != nil || vedette.OperationID(out.GetId()) != id {
		return status.Errorf(codes.InvalidArgument, "the outcome of %s can't be decoded: %v", id, err)
	}
	v.Outcome(wire.ToOutcome(&out))
	return nil
}

// takeLog hands a log to who asked for it, at the pace at which that reads.
func takeLog(v *visit, id vedette.OperationID, r io.Reader) error {
	out, in := io.Pipe()
	if !v.Outcome(vedette.Outcome{ID: id, State: vedette.Done, Status: http.StatusOK, Stream: out}) {
		return status.Error(codes.Canceled, "nobody waits for this log")
	}
	_, err := io.Copy(in, r)
	_ = in.CloseWithError(err) // nil is EOF; it never fails
	if errors.Is(err, io.ErrClosedPipe) {
		return status.Error(codes.Canceled, "the log is read no more")
	}
	return err
}
