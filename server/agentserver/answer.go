package agentserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

const (
	// maxAnswerBytes is the maximum size of an outcome in bytes where agents have enough memory: a list of about ten
	// thousand objects.
	maxAnswerBytes = 48 << 20
	// logReadTimeout is how long a log waits for its reader.
	logReadTimeout = time.Minute
)

// answerLimit returns the maximum size of an outcome in bytes. An outcome takes twice its size of the memory of agents, and
// leaves a fifth of it to others: one that could never have its memory would wait until its deadline.
func (c Config) answerLimit() int {
	return int(min(maxAnswerBytes, c.MemoryBytes*2/5))
}

// answer is one outcome or log on its way from an agent. It has a share of memory of its own, so that where memory is
// short, a large answer ends instead of its agent's session, which other accounts need.
type answer struct {
	agent attachedAgent
	share *memoryShare
	id    vedette.OperationID
	log   bool
	limit int // of an outcome, in bytes
}

// Answer receives one outcome that is too large for the operation stream, or a log.
// gRPC calls it.
func (o operationsService) Answer(stream grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error {
	first, err := receiveFirst(stream.Context(), stream.Recv, o.cfg.HelloTimeout)
	if err != nil {
		return err
	}
	s := o.awaitSession(stream.Context(), first.GetSession())
	if s == nil {
		return errNoSession
	}
	ops := s.operations.Load()
	if ops == nil {
		return errNoSession
	}
	ctx, end := context.WithCancelCause(stream.Context())
	ctx, stop := s.withSession(ctx)
	defer stop()
	share := o.memory.openAnswer(s.share.source, func(error) { end(errAnswerEnded) })
	defer share.close()
	a := answer{ops.agent, share, vedette.OperationID(first.GetOperation()), first.GetLog(), o.cfg.answerLimit()}
	received := make(chan error, 1)
	go func() { received <- a.receive(ctx, first, stream.Recv) }() // Recv ends when this handler returns
	select {
	case err = <-received:
	case <-ctx.Done():
		err = a.endEarly(context.Cause(ctx))
	}
	if err != nil {
		return err
	}
	return stream.SendAndClose(&wire.AnswerEnd{})
}

// errAnswerEnded is the cause of the end of an answer whose memory others need.
var errAnswerEnded = vedette.Errorf(vedette.Unavailable, "the server reclaimed the memory of the answer because the agent's host uses the most")

// endEarly returns the error of an answer whose context has ended.
func (a answer) endEarly(cause error) error {
	if errors.Is(cause, errAnswerEnded) {
		return a.reject(cause) // its session has not ended, so that nobody else reports the operation as lost
	}
	return statusOf(cause)
}

// receive receives an answer if a caller waits for it.
func (a answer) receive(ctx context.Context, first *wire.AnswerPiece, next func() (*wire.AnswerPiece, error)) error {
	unclaim, ok := a.agent.Claim(a.id, a.log)
	if !ok {
		return status.Error(codes.Canceled, "no caller waits for this answer of this agent")
	}
	defer unclaim()
	if err := a.share.reserve(ctx, wire.DecoderMemory); err != nil {
		return a.reject(err)
	}
	reader, err := wire.NewAnswerReader(first, next)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	defer reader.Close()
	switch {
	case a.log:
		return a.receiveLog(reader)
	case a.agent.PassesOn(a.id):
		return a.passOn(reader)
	}
	return a.receiveOutcome(ctx, reader)
}

// reject ends an operation if there is no memory for its answer.
func (a answer) reject(err error) error {
	out := vedette.Outcome{ID: a.id, State: vedette.Failed, Status: http.StatusServiceUnavailable, Reason: "ServiceUnavailable",
		Message: "the server has no memory for the answer: try again later, or request less with a namespace or a selector"}
	if !a.log {
		out.State = vedette.Lost // the operation may have taken effect
	}
	a.agent.HandleOutcome(out)
	return statusOf(err)
}

func (a answer) receiveOutcome(ctx context.Context, r io.Reader) error {
	b, err := a.read(ctx, r)
	switch {
	case errors.Is(err, errTooLarge):
		a.agent.HandleOutcome(vedette.Outcome{ID: a.id, State: vedette.Failed, Status: http.StatusRequestEntityTooLarge, Reason: "TooLarge",
			Message: fmt.Sprintf("the answer has more than %d bytes: request less with a namespace or a selector", a.limit)})
		return nil
	case vedette.KindOf(err) == vedette.Unavailable:
		return a.reject(err)
	case errors.Is(err, wire.ErrIncompleteAnswer): // the agent has given up and will not send it again
		a.agent.HandleOutcome(vedette.Outcome{ID: a.id, State: vedette.Lost, Status: http.StatusBadGateway, Reason: "Incomplete",
			Message: err.Error()})
		return nil
	case err != nil:
		return err
	}
	var out wire.Outcome
	if err := wire.Unmarshal(b, &out); err != nil || vedette.OperationID(out.GetId()) != a.id {
		return status.Errorf(codes.InvalidArgument, "the outcome of %s can't be decoded: %v", a.id, err)
	}
	a.agent.HandleOutcome(wire.ToOutcome(&out))
	return nil
}

var errTooLarge = errors.New("the answer is too large")

// read reads an encoded outcome. It reserves twice its size, because the outcome
// will exist encoded and decoded, and before in two copies: in pieces, which do not have to be
// copied each time that there is more, and in one.
func (a answer) read(ctx context.Context, r io.Reader) ([]byte, error) {
	const increment = 256 << 10
	var pieces [][]byte
	for size := 0; ; {
		if err := a.share.reserve(ctx, 2*increment); err != nil {
			return nil, err
		}
		piece := make([]byte, increment)
		n, err := readPiece(r, piece)
		pieces, size = append(pieces, piece[:n]), size+n
		switch {
		case size > a.limit:
			return nil, errTooLarge
		case errors.Is(err, io.EOF):
			return slices.Concat(pieces...), nil
		case err != nil:
			return nil, fmt.Errorf("read the outcome of %s after %d bytes: %w", a.id, size, err)
		}
	}
}

// readPiece fills a piece. The error is io.EOF only at the regular end of the answer, unlike that of io.ReadFull, which
// cannot be distinguished from that of a compressed stream that was cut off.
func readPiece(r io.Reader, piece []byte) (n int, err error) {
	for n < len(piece) && err == nil {
		var more int
		more, err = r.Read(piece[n:])
		n += more
	}
	return n, err
}

// errLogReadTimeout is the error that the reader of a closed log and its agent receive.
var errLogReadTimeout = vedette.Errorf(vedette.Unavailable,
	"the log was closed because it was not read for %v: request it again from where it ended", logReadTimeout)

// receiveLog passes a log to its reader, at the speed of the reader. A log whose reader
// stops reading is closed, because an agent can send only a few logs at once. A log
// without new lines stays open.
func (a answer) receiveLog(r io.Reader) error {
	out, in := io.Pipe()
	if !a.agent.HandleOutcome(vedette.Outcome{ID: a.id, State: vedette.Done, Status: http.StatusOK, Stream: out}) {
		return status.Error(codes.Canceled, "no caller waits for this log")
	}
	return copyToReader(in, r)
}

// passOn passes an outcome to the server that has accepted its operation, at the speed of that server. This one neither decodes nor
// holds it.
func (a answer) passOn(r io.Reader) error {
	out, in := io.Pipe()
	if !a.agent.HandleEncoded(a.id, out) {
		return status.Error(codes.Canceled, "no caller waits for this answer")
	}
	return copyToReader(in, r)
}

func copyToReader(in *io.PipeWriter, r io.Reader) error {
	_, err := io.Copy(timeoutWriter{in}, r)
	_ = in.CloseWithError(err) // nil is EOF; it never fails
	switch {
	case errors.Is(err, errLogReadTimeout):
		return status.Error(codes.Canceled, err.Error())
	case errors.Is(err, io.ErrClosedPipe):
		return status.Error(codes.Canceled, "the caller stopped reading")
	}
	return err
}

// timeoutWriter is a pipe that is closed if nothing is read from it.
type timeoutWriter struct{ in *io.PipeWriter }

// Write waits for the reader, at most logReadTimeout.
func (i timeoutWriter) Write(b []byte) (int, error) {
	timer := time.AfterFunc(logReadTimeout, func() { _ = i.in.CloseWithError(errLogReadTimeout) })
	n, err := i.in.Write(b)
	if !timer.Stop() && err != nil {
		return n, errLogReadTimeout
	}
	return n, err
}
