package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

const (
	// maxAnswer bounds an outcome in bytes: a list of some ten thousand objects.
	maxAnswer = 64 << 20
	// logPatience is how long a log waits for its reader to take what there is.
	logPatience = time.Minute
)

// Answer takes one outcome that is too big for the stream of all, or a log. gRPC
// calls it.
func (o operationsService) Answer(stream grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error {
	first, err := firstOf(stream.Context(), stream.Recv, o.cfg.Greeting)
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
	ctx, end := s.during(stream.Context())
	defer end()
	taken := make(chan error, 1)
	go func() { taken <- v.answer(ctx, first, stream.Recv) }() // Recv ends with this handler
	select {
	case err = <-taken:
	case <-ctx.Done():
		err = statusOf(context.Cause(ctx))
	}
	if err != nil {
		return err
	}
	return stream.SendAndClose(&wire.AnswerEnd{})
}

// answer takes an answer that the agent may give.
func (v *visit) answer(ctx context.Context, first *wire.AnswerPiece, next func() (*wire.AnswerPiece, error)) error {
	id, log := vedette.OperationID(first.GetOperation()), first.GetLog()
	release, ok := v.Claim(id, log)
	if !ok {
		return status.Error(codes.Canceled, "nobody waits for this answer of this agent")
	}
	defer release()
	if err := v.share.reserve(ctx, wire.DecoderMemory); err != nil {
		return v.unread(id, log, err)
	}
	defer v.share.release(wire.DecoderMemory)
	reader, err := wire.NewAnswerReader(first, next)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	defer reader.Close()
	if log {
		return v.takeLog(id, reader)
	}
	return v.takeOutcome(ctx, id, reader)
}

// unread ends an operation whose answer there is no memory for.
func (v *visit) unread(id vedette.OperationID, log bool, err error) error {
	out := vedette.Outcome{ID: id, State: vedette.Failed, Status: http.StatusServiceUnavailable, Reason: "ServiceUnavailable",
		Message: "the server has no memory for the answer at the moment; ask again, or for less, by namespace or selector"}
	if !log {
		out.State = vedette.Lost // what it answers may have been done
	}
	v.Outcome(out)
	return statusOf(err)
}

func (v *visit) takeOutcome(ctx context.Context, id vedette.OperationID, r io.Reader) error {
	b, free, err := v.readAnswer(ctx, id, r)
	defer free()
	switch {
	case errors.Is(err, errTooLarge):
		v.Outcome(vedette.Outcome{ID: id, State: vedette.Failed, Status: http.StatusRequestEntityTooLarge, Reason: "TooLarge",
			Message: fmt.Sprintf("the answer has more than %d bytes; ask for less, by namespace or selector", maxAnswer)})
		return nil
	case vedette.KindOf(err) == vedette.Unavailable:
		return v.unread(id, false, err)
	case err != nil:
		return err
	}
	var out wire.Outcome
	if err := wire.Unmarshal(b, &out); err != nil || vedette.OperationID(out.GetId()) != id {
		return status.Errorf(codes.InvalidArgument, "the outcome of %s can't be decoded: %v", id, err)
	}
	v.Outcome(wire.ToOutcome(&out))
	return nil
}

var errTooLarge = errors.New("the answer is too large")

// readAnswer reads an encoded outcome. Twice its bytes are reserved, for the decoded
// one, until they are freed.
func (v *visit) readAnswer(ctx context.Context, id vedette.OperationID, r io.Reader) (b []byte, free func(), err error) {
	var buf bytes.Buffer
	reserved := 0
	free = func() { v.share.release(reserved) }
	const step = 256 << 10
	for {
		if err := v.share.reserve(ctx, 2*step); err != nil {
			return nil, free, err
		}
		reserved += 2 * step
		n, err := io.CopyN(&buf, r, step)
		switch {
		case buf.Len() > maxAnswer:
			return nil, free, errTooLarge
		case errors.Is(err, io.EOF):
			return buf.Bytes(), free, nil
		case err != nil:
			return nil, free, fmt.Errorf("read the outcome of %s after %d bytes: %w", id, n, err)
		}
	}
}

// errNotRead tells a log's reader why it has no more of it, and its agent.
var errNotRead = vedette.Errorf(vedette.Unavailable, "the log was not read for %v and is closed; ask for it again, from where it ended", logPatience)

// takeLog hands a log to who asked for it, at the pace at which that reads. A reader
// that stops loses its log: the agent has room for few. A log that is silent stays.
func (v *visit) takeLog(id vedette.OperationID, r io.Reader) error {
	out, in := io.Pipe()
	if !v.Outcome(vedette.Outcome{ID: id, State: vedette.Done, Status: http.StatusOK, Stream: out}) {
		return status.Error(codes.Canceled, "nobody waits for this log")
	}
	_, err := io.Copy(impatient{in}, r)
	_ = in.CloseWithError(err) // nil is EOF; it never fails
	switch {
	case errors.Is(err, errNotRead):
		return status.Error(codes.Canceled, err.Error())
	case errors.Is(err, io.ErrClosedPipe):
		return status.Error(codes.Canceled, "the log is read no more")
	}
	return err
}

// impatient is a pipe that closes when nobody reads what is written.
type impatient struct{ in *io.PipeWriter }

// Write waits for the reader, up to logPatience.
func (i impatient) Write(b []byte) (int, error) {
	alarm := time.AfterFunc(logPatience, func() { _ = i.in.CloseWithError(errNotRead) })
	n, err := i.in.Write(b)
	if !alarm.Stop() && err != nil {
		return n, errNotRead
	}
	return n, err
}
