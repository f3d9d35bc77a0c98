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

// executor takes operations and remembers their outcomes.
type executor interface {
	Submit(vedette.Operation)
	Cancel(vedette.OperationID)
	Forget(vedette.OperationID)
	Unacknowledged() []vedette.Outcome
}

// operationStream is a link's half of the Operations service: one stream that
// operations come down and outcomes go up, and one more for each answer that is
// too big for it.
type operationStream struct {
	uplink  *Uplink
	client  wire.OperationsClient
	session string
	ctx     context.Context // the link's: what is being answered ends with it
	stream  grpc.BidiStreamingClient[wire.OperationsUp, wire.OperationsDown]
	sendMu  sync.Mutex // held while something is sent on the stream

	mu            sync.Mutex
	closed        bool           // nothing more is answered
	answerStreams sync.WaitGroup // the streams of Answer; grows only while not over
}

// startAnswer answers on a stream of its own, and reports whether it still can.
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

// serveOperations attaches to the server and takes operations until the link ends.
func (l *link) serveOperations(ctx context.Context, conn *grpc.ClientConn, session string) error {
	o := &operationStream{uplink: l.uplink, client: wire.NewOperationsClient(conn), session: session, ctx: ctx}
	defer o.close()
	var err error
	if o.stream, err = o.client.Serve(ctx); err != nil {
		return fmt.Errorf("open the stream of operations: %w", err)
	}
	if err := o.stream.Send(&wire.OperationsUp{Message: &wire.OperationsUp_Attach{Attach: &wire.Attach{
		Session: session, Process: l.uplink.cfg.Process,
	}}}); err != nil {
		_, err = o.stream.Recv() // Send says EOF only; Recv says why
		return fmt.Errorf("attach for operations: %w", err)
	}
	l.uplink.attach(o)
	defer l.uplink.detach(o)
	for _, out := range l.uplink.executor.Unacknowledged() {
		o.answer(out)
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
		if m, err = joiner.Join(m); err != nil {
			return err
		}
		switch m := m.GetMessage().(type) {
		case *wire.OperationsDown_Operation:
			o.uplink.executor.Submit(wire.ToOperation(m.Operation, time.Now()))
		case *wire.OperationsDown_Cancel:
			o.uplink.executor.Cancel(vedette.OperationID(m.Cancel.GetId()))
		case *wire.OperationsDown_Forget:
			o.uplink.executor.Forget(vedette.OperationID(m.Forget.GetId()))
		}
	}
}

// answer sends an outcome. One that can't be sent because the link ends stays on
// the desk for the next.
func (o *operationStream) answer(out vedette.Outcome) {
	if out.Stream != nil {
		if !o.startAnswer(func() { o.sendLog(out) }) {
			o.uplink.discardLog(out)
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
		o.uplink.log.Debug("outcome not sent; the connection is lost", "operation", out.ID, "error", err)
	}
}

// sendLargeOutcome sends an outcome on a stream of its own.
func (o *operationStream) sendLargeOutcome(encoded *wire.Outcome) {
	b, err := wire.Marshal(encoded)
	if err == nil {
		err = o.sendAnswer(&wire.AnswerPiece{Operation: encoded.GetId()}, func(w *wire.AnswerWriter) error {
			_, err := w.Write(b)
			return errors.Join(err, w.Close(nil))
		})
	}
	if err != nil {
		o.uplink.log.Debug("outcome not sent", "operation", encoded.GetId(), "error", err)
	}
}

// sendLog sends a log as it is read, until it ends or nobody wants more of it.
func (o *operationStream) sendLog(out vedette.Outcome) {
	defer o.uplink.executor.Forget(out.ID)
	closeLog := sync.OnceFunc(func() { _ = out.Stream.Close() })
	defer closeLog()
	defer context.AfterFunc(o.ctx, closeLog)() // a log that is silent would not notice that the link has ended
	err := o.sendAnswer(&wire.AnswerPiece{Operation: string(out.ID), Log: true}, func(w *wire.AnswerWriter) error {
		return copyLog(w, out.Stream)
	})
	if errors.Is(err, errLogSendTimeout) {
		o.uplink.log.Warn("log closed", "operation", out.ID, "error", err)
	} else if err != nil {
		o.uplink.log.Debug("log not sent to its end", "operation", out.ID, "error", err)
	}
}

// logSendTimeout is how long a piece of a log waits for the server to take it. A log
// that has nothing to send waits for nobody. It is a little more than the server
// gives its reader, so that the server can say why it ends.
const logSendTimeout = 90 * time.Second

var errLogSendTimeout = fmt.Errorf("the server took nothing of the log for %v: its reader has stopped, or the connection", logSendTimeout)

// withSendTimeout has a send that takes too long end what it is part of.
func withSendTimeout(send func(*wire.AnswerPiece) error, cancel context.CancelCauseFunc) func(*wire.AnswerPiece) error {
	return func(p *wire.AnswerPiece) error {
		timer := time.AfterFunc(logSendTimeout, func() { cancel(errLogSendTimeout) })
		defer timer.Stop()
		return send(p)
	}
}

// copyLog flushes what it has before it waits for more, so that a log that is
// followed arrives line by line and one that is not, in large pieces.
func copyLog(w *wire.AnswerWriter, log io.Reader) error {
	if err := w.Flush(); err != nil { // says that the log is open, though it may be silent for hours
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
	if first.GetLog() {
		send = withSendTimeout(send, cancel)
	}
	if err := write(wire.NewAnswerWriter(first, send)); err != nil {
		_, why := stream.CloseAndRecv() // the server says why it wants no more
		return errors.Join(err, why, context.Cause(ctx))
	}
	_, err = stream.CloseAndRecv()
	return err
}

// Answer sends an outcome to the server, or leaves it to the desk where none is
// connected. It takes the outcome's Stream.
func (u *Uplink) Answer(out vedette.Outcome) {
	if o := u.operationStream.Load(); o != nil {
		o.answer(out)
		return
	}
	if out.Stream != nil {
		u.discardLog(out)
	}
}

// discardLog closes a log that nobody can read. Who wants it asks again.
func (u *Uplink) discardLog(out vedette.Outcome) {
	_ = out.Stream.Close() // nothing of it was read
	u.executor.Forget(out.ID)
}

func (u *Uplink) attach(o *operationStream) { u.operationStream.Store(o) }

func (u *Uplink) detach(o *operationStream) { u.operationStream.CompareAndSwap(o, nil) }
