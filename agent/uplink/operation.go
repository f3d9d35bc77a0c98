package uplink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// executor executes operations and keeps their outcomes until they are acknowledged.
type executor interface {
	Submit(vedette.Operation, *Delivery)
	Cancel(vedette.OperationID)
	Forget(vedette.OperationID)
	Unacknowledged() []vedette.Outcome
	// IsBusy reports whether operations run, or outcomes wait for their acknowledgement for less than ackWait, except logs.
	IsBusy(ackWait time.Duration) bool
}

// operationStream is the agent's side of the Operations service: one stream for operations
// and outcomes, and one more for each outcome that is too large for it.
type operationStream struct {
	uplink  *Uplink
	link    *link
	client  wire.OperationsClient
	session string
	ctx     context.Context // the link's context, which ends all answers
	stream  grpc.BidiStreamingClient[wire.OperationsUp, wire.OperationsDown]
	sendMu  sync.Mutex // held during Send

	mu            sync.Mutex
	closed        bool           // no more answers are started
	answerStreams sync.WaitGroup // the streams of Answer; grows only while closed is false
}

// startAnswer runs answer in a goroutine, unless the stream is closed. It reports whether it
// did.
func (o *operationStream) startAnswer(answer func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.answerStreams.Go(answer)
	}
	return !o.closed
}

func (o *operationStream) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.answerStreams.Wait()
}

// serveOperations attaches to the server and receives operations until the link ends.
func (l *link) serveOperations(ctx context.Context, conn *grpc.ClientConn, session string) error {
	o := &operationStream{uplink: l.uplink, link: l, client: wire.NewOperationsClient(conn), session: session, ctx: ctx}
	defer o.close()
	var err error
	o.stream, err = o.client.Serve(ctx)
	if err != nil {
		return fmt.Errorf("open the stream of operations: %w", err)
	}
	if err := o.stream.Send(&wire.OperationsUp{Message: &wire.OperationsUp_Attach{Attach: &wire.Attach{
		Session: session, Process: l.uplink.cfg.Process,
	}}}); err != nil {
		_, err = o.stream.Recv() // Send returns only io.EOF; Recv returns the reason
		return fmt.Errorf("attach for operations: %w", err)
	}
	l.uplink.attach(o)
	defer l.uplink.detach(o)
	for _, out := range l.uplink.executor.Unacknowledged() {
		o.answer(out) //nolint:contextcheck // the answers live as long as the stream
	}
	return o.receive()
}

func (o *operationStream) receive() error {
	var joiner wire.Joiner
	for {
		m, err := o.stream.Recv()
		if err != nil {
			return fmt.Errorf("receive operations: %w", err)
		}
		m, err = joiner.Join(m)
		if err != nil {
			return err
		}
		switch m := m.GetMessage().(type) {
		case *wire.OperationsDown_Operation:
			o.submit(m.Operation)
		case *wire.OperationsDown_Cancel:
			o.uplink.executor.Cancel(vedette.OperationID(m.Cancel.GetId()))
		case *wire.OperationsDown_Forget:
			o.uplink.executor.Forget(vedette.OperationID(m.Forget.GetId()))
		}
	}
}

// submit passes an operation to the executor. Its deadline is by the agent's clock, and not later than
// by the server's.
func (o *operationStream) submit(encoded *wire.Operation) {
	op := wire.ToOperation(encoded, time.Now())
	d := o.link.newDelivery(boundedMillis(encoded.GetTimeoutMillis()), encoded.GetSentStamp())
	op.Deadline = d.deadline
	o.uplink.executor.Submit(op, d)
}

// answer sends an outcome. If the link ends before, the executor keeps the outcome for the
// next link.
func (o *operationStream) answer(out vedette.Outcome) {
	if out.Stream != nil {
		if !o.startAnswer(func() { o.sendLog(out) }) {
			o.uplink.discardStream(out)
		}
		return
	}
	if out.More != nil {
		if !o.startAnswer(func() { o.sendObjects(out) }) {
			o.uplink.discardStream(out)
		}
		return
	}
	encoded := wire.FromOutcome(out)
	if proto.Size(encoded) > wire.MaxPiece {
		o.startAnswer(func() { o.sendLargeOutcome(encoded) })
		return
	}
	o.sendMu.Lock()
	defer o.sendMu.Unlock()
	if err := o.stream.Send(&wire.OperationsUp{Message: &wire.OperationsUp_Outcome{Outcome: encoded}}); err != nil {
		o.uplink.log.Debug("cannot send an outcome, connection lost", "operation", out.ID, "error", err)
	}
}

func (o *operationStream) sendLargeOutcome(encoded *wire.Outcome) {
	b, err := wire.Marshal(encoded)
	if err == nil {
		err = o.sendAnswer(&wire.AnswerPiece{Operation: encoded.GetId()}, func(w *wire.AnswerWriter) error {
			_, err := w.Write(b)
			return errors.Join(err, w.Close(nil))
		})
	}
	if err != nil {
		o.uplink.log.Debug("cannot send an outcome", "operation", encoded.GetId(), "error", err)
	}
}

// sendObjects sends an outcome while its objects are read. How the operation ended comes last, so that
// a server never takes a part of the objects for all. A cluster that does not answer keeps no connection from
// ending, because the agent connects again only after that.
func (o *operationStream) sendObjects(out vedette.Outcome) {
	forget := func() { o.uplink.executor.Forget(out.ID) } // it also ends reading
	defer forget()
	defer context.AfterFunc(o.ctx, forget)()
	closeObjects := sync.OnceFunc(out.More.Close)
	defer closeObjects()
	err := o.sendAnswer(&wire.AnswerPiece{Operation: string(out.ID)}, func(w *wire.AnswerWriter) error {
		end, err := copyObjects(w, out)
		if err != nil {
			return err
		}
		b, err := wire.Marshal(wire.FromOutcome(end))
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return errors.Join(err, w.Close(nil))
	})
	if err != nil {
		o.uplink.log.Debug("cannot send the objects of an outcome", "operation", out.ID, "error", err)
	}
}

// copyObjects sends the objects of an outcome, and returns the outcome without them.
func copyObjects(w io.Writer, out vedette.Outcome) (end vedette.Outcome, err error) {
	for _, object := range out.Objects {
		if err := wire.WriteOutcomeObject(w, object); err != nil {
			return end, err
		}
	}
	more := out.More
	out.Objects, out.More = nil, nil
	for {
		object, err := more.Next()
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			end = more.Failure(err)
			end.ID = out.ID
			return end, nil
		}
		if err := wire.WriteOutcomeObject(w, object); err != nil {
			return end, err
		}
	}
}

// sendLog sends a log while it is read, until the log ends or its reader leaves.
func (o *operationStream) sendLog(out vedette.Outcome) {
	defer o.uplink.executor.Forget(out.ID)
	closeLog := sync.OnceFunc(func() { _ = out.Stream.Close() })
	defer closeLog()
	defer context.AfterFunc(o.ctx, closeLog)() // a silent log would not notice that the link has ended
	err := o.sendAnswer(&wire.AnswerPiece{Operation: string(out.ID), Log: true}, func(w *wire.AnswerWriter) error {
		return copyLog(w, out.Stream)
	})
	if errors.Is(err, errLogSendTimeout) {
		o.uplink.log.Warn("closed a log that the server does not read", "operation", out.ID, "error", err)
	} else if err != nil {
		o.uplink.log.Debug("cannot send the rest of a log", "operation", out.ID, "error", err)
	}
}

// logSendTimeout is how long the server may take to receive a piece of a log. A silent log
// has no timeout. It is slightly longer than the server's timeout for the reader of the log,
// so that the server can report the reason.
const logSendTimeout = 90 * time.Second

var errLogSendTimeout = fmt.Errorf("the server received nothing of the log for %v: its reader or the connection has stopped",
	logSendTimeout)

// withSendTimeout returns a send function that cancels the stream if a send takes too long.
func withSendTimeout(send func(*wire.AnswerPiece) error, cancel context.CancelCauseFunc) func(*wire.AnswerPiece) error {
	return func(p *wire.AnswerPiece) error {
		timer := time.AfterFunc(logSendTimeout, func() { cancel(errLogSendTimeout) })
		defer timer.Stop()
		return send(p)
	}
}

// copyLog sends a log. It flushes before it waits for more, so that a followed log arrives
// line by line, and any other log in large pieces.
func copyLog(w *wire.AnswerWriter, log io.Reader) error {
	if err := w.Flush(); err != nil { // reports that the log is open, because it may be silent for hours
		return err
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := log.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
			if err := w.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return w.Close(nil)
		}
		if err != nil {
			return w.Close(err)
		}
	}
}

func (o *operationStream) sendAnswer(first *wire.AnswerPiece, write func(*wire.AnswerWriter) error) error {
	first.Session = o.session
	ctx, cancel := context.WithCancelCause(o.ctx)
	defer cancel(nil)
	stream, err := o.client.Answer(ctx)
	if err != nil {
		return err
	}
	send := stream.Send
	send = withSendTimeout(send, cancel)
	if err := write(wire.NewAnswerWriter(first, send)); err != nil {
		_, why := stream.CloseAndRecv() // the server returns the reason
		return errors.Join(err, why, context.Cause(ctx))
	}
	_, err = stream.CloseAndRecv()
	return err
}

// Answer sends an outcome to the server. If there is no connection, the executor keeps the
// outcome. Answer takes ownership of the outcome's Stream.
func (u *Uplink) Answer(out vedette.Outcome) {
	if o := u.operationStream.Load(); o != nil {
		o.answer(out)
		return
	}
	if out.Stream != nil || out.More != nil {
		u.discardStream(out)
	}
}

// discardStream closes a log, or a list, without a connection to send it. The server must request it again.
func (u *Uplink) discardStream(out vedette.Outcome) {
	if out.Stream != nil {
		_ = out.Stream.Close() // nothing was read, so the error does not matter
	}
	if out.More != nil {
		out.More.Close()
	}
	u.executor.Forget(out.ID)
}

func (u *Uplink) attach(o *operationStream) { u.operationStream.Store(o) }

func (u *Uplink) detach(o *operationStream) { u.operationStream.CompareAndSwap(o, nil) }
