package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/peer/peerproto"
	"github.com/vedette-io/vedette/wire"
)

type relayStream = grpc.BidiStreamingServer[peerproto.RelayUp, peerproto.RelayDown]

// relayCall is one call of Relay, at the server that the agent is connected to:
//
//	opened ──Agent──> offered ──Operation──> sent ──Outcome──> answered ──Forget──> ended
//
// The calling server may leave at any time. The operation then goes on without it.
type relayCall struct {
	server *Server
	stream relayStream
	open   *peerproto.Open
	opened time.Time
	relay  *dispatch.Relay
	in     chan *wire.OperationsDown // closed when nothing more is received
	err    error                     // why in is closed; nil if the caller wants nothing more
}

// Relay implements peerproto.PeersServer.
func (s *Server) Relay(stream relayStream) error {
	caller, err := s.caller(stream.Context())
	if err != nil {
		return err
	}
	c := &relayCall{server: s, stream: stream, in: make(chan *wire.OperationsDown)}
	first, err := stream.Recv() // ends with the stream, which the caller ends
	if err != nil {
		return err
	}
	if c.open = first.GetOpen(); c.open == nil {
		return status.Error(codes.InvalidArgument, "the first message must be Open")
	}
	c.opened = time.Now()
	known := c.open.GetKnown()
	c.relay, err = s.dispatch.Relay(stream.Context(), dispatch.RelayRequest{From: caller.ID,
		Operation: vedette.OperationID(c.open.GetOperation()), Account: vedette.AccountName(c.open.GetAccount()),
		Documents: int64(min(c.open.GetDocuments(), wire.MaxRecord)),
		Known:     vedette.Key{Kind: wire.ToKind(known.GetKind()), Namespace: known.GetNamespace(), Name: known.GetName()}})
	if err != nil {
		return c.sendUnsent(err)
	}
	defer c.relay.Close()
	return c.serve(stream.Context())
}

// serve offers the agent, and relays the operation and its outcome.
func (c *relayCall) serve(ctx context.Context) error {
	agent := c.relay.Agent()
	if err := c.stream.Send(&peerproto.RelayDown{Message: &peerproto.RelayDown_Agent{Agent: &peerproto.Agent{
		Id: string(agent.ID), Version: agent.Version, Process: agent.Process, Cluster: wire.FromCluster(c.relay.Cluster()),
		Stamp: time.Since(c.opened).Milliseconds(),
	}}}); err != nil {
		return err
	}
	go c.receive(ctx)
	timeout := time.NewTimer(c.server.cfg.ConnectTimeout)
	defer timeout.Stop()
	select {
	case m, ok := <-c.in:
		if !ok {
			return c.err
		}
		if m.GetOperation() == nil {
			return status.Error(codes.InvalidArgument, "the operation must come first")
		}
		if err := c.accept(ctx, m.GetOperation()); err != nil {
			return c.sendUnsent(err)
		}
	case <-c.relay.Gone():
		return c.sendGone()
	case <-timeout.C:
		return status.Error(codes.DeadlineExceeded, "the operation did not arrive in time")
	case <-ctx.Done():
		return endOf(ctx)
	}
	return c.answer(ctx)
}

// receive receives messages, and joins their parts, until the caller has sent all.
func (c *relayCall) receive(ctx context.Context) {
	defer close(c.in)
	var joiner wire.Joiner
	received := uint64(0)
	for {
		up, err := c.stream.Recv()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			c.err = err
			return
		}
		part := up.GetDown().GetPart()
		if received += uint64(len(part.GetBytes())); received > min(c.open.GetDocuments(), wire.MaxRecord)+maxMessage {
			c.err = status.Error(codes.InvalidArgument, "the operation is larger than was announced")
			return
		}
		m, err := joiner.Join(up.GetDown())
		if err != nil {
			c.err = status.Error(codes.InvalidArgument, err.Error())
			return
		}
		if m == nil {
			continue
		}
		select {
		case c.in <- m:
		case <-ctx.Done():
			return
		}
	}
}

// accept passes the operation to the agent. Its time is counted from the stamp: from when this server sent Agent, at the earliest, so that
// nothing that stood still in between extends it. A stamp of the future is a mistake, and does not extend it either.
func (c *relayCall) accept(ctx context.Context, encoded *wire.Operation) error {
	if _, err := c.server.caller(ctx); err != nil { // it may have been evicted meanwhile
		return err
	}
	sent := c.opened.Add(min(time.Duration(max(0, min(encoded.GetSentStamp(), maxMillis)))*time.Millisecond, time.Since(c.opened)))
	return c.relay.Send(wire.ToOperation(encoded, sent)) //nolint:contextcheck // its changes are stored even if the caller has left
}

const maxMillis = int64(365 * 24 * time.Hour / time.Millisecond)

// answer passes the outcome on.
func (c *relayCall) answer(ctx context.Context) error {
	for {
		select {
		case e, ok := <-c.relay.Events():
			if !ok {
				return c.sendGone()
			}
			if err := c.sendEvent(ctx, e); err != nil {
				return err
			}
			return c.awaitForget(ctx)
		case m, ok := <-c.in:
			switch {
			case !ok:
				return c.err
			case m.GetOperation() != nil:
				return status.Error(codes.InvalidArgument, "a second operation on one stream")
			case m.GetCancel() != nil:
				c.relay.Cancel()
			}
		case <-ctx.Done():
			return endOf(ctx)
		}
	}
}

// awaitForget waits until the calling server has the outcome. Until then the agent must keep it.
func (c *relayCall) awaitForget(ctx context.Context) error {
	timeout := time.NewTimer(c.server.cfg.ConnectTimeout)
	defer timeout.Stop()
	for {
		select {
		case m, ok := <-c.in:
			if !ok {
				return c.err
			}
			if m.GetForget() != nil {
				c.relay.Acknowledge()
				return nil
			}
		case <-timeout.C:
			return status.Error(codes.DeadlineExceeded, "the outcome was not acknowledged in time")
		case <-ctx.Done():
			return endOf(ctx)
		}
	}
}

// endOf returns why a call has ended.
func endOf(ctx context.Context) error {
	return status.FromContextError(context.Cause(ctx)).Err() //nolint:wrapcheck // it is a status
}

func (c *relayCall) sendGone() error {
	return c.stream.Send(&peerproto.RelayDown{Message: &peerproto.RelayDown_Gone{Gone: &peerproto.Gone{}}})
}

// sendUnsent says why the agent has not received the operation.
func (c *relayCall) sendUnsent(err error) error {
	unsent := &peerproto.Unsent{Message: "internal error, see its log"}
	switch {
	case dispatch.IsNotHere(err):
		unsent.Reason = peerproto.Unsent_REASON_NOT_HERE
		unsent.Message = err.Error()
	case vedette.KindOf(err) != "":
		unsent.Message = err.Error()
	case status.Code(err) != codes.Unknown:
		return err
	default:
		c.server.log.Error("operation of another server rejected", "operation", c.open.GetOperation(), "error", err)
	}
	return c.stream.Send(&peerproto.RelayDown{Message: &peerproto.RelayDown_Unsent{Unsent: unsent}})
}

// sendEvent sends an outcome.
func (c *relayCall) sendEvent(ctx context.Context, e dispatch.RelayEvent) error {
	if e.Encoded == nil {
		return c.sendOutcome(ctx, e.Outcome)
	}
	defer context.AfterFunc(ctx, func() { _ = e.Encoded.Close() })()
	defer func() { _ = e.Encoded.Close() }()
	return c.sendEncoded(e.Encoded)
}

// sendEncoded sends an outcome while the agent sends it, at the speed of the other server. If the agent's connection breaks, the other
// server asks again.
func (c *relayCall) sendEncoded(out io.Reader) error {
	buf := make([]byte, wire.MaxPiece)
	for {
		n, err := readPiece(out, buf)
		isLast := err == io.EOF // not errors.Is: the error of a stream that was cut off may wrap it
		switch {
		case errors.Is(err, wire.ErrIncompleteAnswer):
			return c.sendPiece(&peerproto.Piece{Last: true, BrokeOff: vedette.CleanText(err.Error(), maxBrokeOff)})
		case err != nil && !isLast:
			return c.sendGone()
		}
		if err := c.sendPiece(&peerproto.Piece{Content: buf[:n], Last: isLast}); err != nil || isLast {
			return err
		}
	}
}

// readPiece fills a piece. Unlike that of io.ReadFull, the error is io.EOF itself at the regular end only: a part of an outcome must not
// pass for all of it.
func readPiece(r io.Reader, piece []byte) (n int, err error) {
	for n < len(piece) && err == nil {
		var more int
		more, err = r.Read(piece[n:])
		n += more
	}
	return n, err
}

// sendOutcome sends an outcome, or a log for as long as it is read.
func (c *relayCall) sendOutcome(ctx context.Context, out vedette.Outcome) error {
	if out.Stream != nil {
		defer context.AfterFunc(ctx, func() { _ = out.Stream.Close() })() // a silent log would not notice that nobody reads it
		defer func() { _ = out.Stream.Close() }()
		return c.sendLog(out.Stream)
	}
	encoded, err := wire.Marshal(wire.FromOutcome(out))
	if err != nil {
		return fmt.Errorf("encode the outcome of %s: %w", out.ID, err)
	}
	first := true
	for first || len(encoded) > 0 {
		n := min(len(encoded), wire.MaxPiece)
		piece := &peerproto.Piece{Content: encoded[:n], Last: n == len(encoded)}
		if first {
			piece.Size = uint64(len(encoded))
		}
		if err := c.sendPiece(piece); err != nil {
			return err
		}
		encoded = encoded[n:]
		first = false
	}
	return nil
}

// sendLog sends a log at the speed of its reader. The first piece is empty, and says that the log has begun: it may be silent for hours.
func (c *relayCall) sendLog(log io.Reader) error {
	if err := c.sendPiece(&peerproto.Piece{Log: true}); err != nil {
		return err
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := log.Read(buf)
		if n > 0 {
			if err := c.sendPiece(&peerproto.Piece{Log: true, Content: buf[:n]}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return c.sendPiece(&peerproto.Piece{Log: true, Last: true})
		case err != nil:
			return c.sendPiece(&peerproto.Piece{Log: true, Last: true, BrokeOff: vedette.CleanText(err.Error(), maxBrokeOff)})
		}
	}
}

// maxBrokeOff is the maximum length in bytes of why a log is incomplete.
const maxBrokeOff = 8 << 10

func (c *relayCall) sendPiece(p *peerproto.Piece) error {
	return c.stream.Send(&peerproto.RelayDown{Message: &peerproto.RelayDown_Piece{Piece: p}})
}
