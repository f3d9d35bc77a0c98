package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/peer/peerproto"
	"github.com/vedette-io/vedette/wire"
)

// inbound is what a remoteAgent has received. Its methods belong to the goroutine that receives.
type inbound struct {
	*remoteAgent
	ctx     context.Context
	isEnded bool // the one event has been passed on, or there is none

	// Of an outcome in several pieces.
	pieces   [][]byte
	received int
	size     int // 0 if it is unknown
	memory   *fair.Grant

	log *io.PipeWriter // of a log that has begun
}

// maxAnswerBytes is the maximum size of an outcome in bytes, as on the port of agents.
const maxAnswerBytes = 48 << 20

// answerLimit returns the maximum size of an outcome: it takes twice its size, and leaves a fifth of the memory to others.
func (c *Client) answerLimit() int { return int(min(maxAnswerBytes, c.cfg.AnswerBytes*2/5)) }

// handle handles one message. What the other server may not say ends the call, as if the connection were lost: the operation is then sent
// again where that is safe.
func (in *inbound) handle(m *peerproto.RelayDown) error {
	isSent, _, _ := in.state()
	if in.isEnded && in.log == nil {
		return nil // late, or twice: the outcome counts that came first
	}
	switch m := m.GetMessage().(type) {
	case *peerproto.RelayDown_Gone:
		return io.EOF
	case *peerproto.RelayDown_Unsent:
		if !isSent {
			return io.EOF
		}
		in.client.log.Info("another server has not passed an operation on", "server", in.peer.ID, "operation", in.wanted.Operation,
			"reason", vedette.CleanText(m.Unsent.GetMessage(), maxReason))
		in.count("unsent")
		in.pass(dispatch.RemoteEvent{Returned: true})
		return nil
	case *peerproto.RelayDown_Piece:
		if !isSent {
			return fmt.Errorf("%w: it answers an operation that it was not sent", errBadPeer)
		}
		if m.Piece.GetLog() {
			return in.handleLog(m.Piece)
		}
		return in.handlePiece(m.Piece)
	}
	return fmt.Errorf("%w: a message has no content that this server knows", errBadPeer)
}

// handlePiece takes a piece of the outcome.
func (in *inbound) handlePiece(p *peerproto.Piece) error {
	if in.log != nil {
		return fmt.Errorf("%w: an outcome follows the log", errBadPeer)
	}
	if in.pieces == nil {
		if ok := in.begin(p); !ok {
			return nil
		}
	}
	in.received += len(p.GetContent())
	switch {
	case p.GetBrokeOff() != "":
		in.reject(http.StatusBadGateway, "Incomplete", vedette.CleanText(p.GetBrokeOff(), maxBrokeOff))
		return nil
	case in.size == 0:
		if ok := in.grow(len(p.GetContent())); !ok {
			return nil
		}
	case in.received > in.size || p.GetLast() != (in.received == in.size):
		return fmt.Errorf("%w: the outcome does not have the size that it announced", errBadPeer)
	}
	in.pieces = append(in.pieces, p.GetContent())
	if !p.GetLast() {
		return nil
	}
	return in.complete()
}

// grow reserves the memory of a piece of an outcome of unknown size. It reports false if the operation has ended without its answer.
func (in *inbound) grow(bytes int) bool {
	if in.received > in.client.answerLimit() {
		in.rejectLarge(fmt.Sprintf("more than %d bytes", in.client.answerLimit()))
		return false
	}
	if err := in.memory.Grow(in.ctx, 2*int64(bytes)); err != nil {
		in.rejectBusy()
		return false
	}
	return true
}

// begin reserves the memory of an outcome. It reports false if the operation has ended without its answer.
func (in *inbound) begin(p *peerproto.Piece) bool {
	in.pieces = [][]byte{}
	if p.GetSize() > uint64(in.client.answerLimit()) {
		in.rejectLarge(fmt.Sprintf("%d bytes", p.GetSize()))
		return false
	}
	in.size = int(p.GetSize())
	if in.size > 0 && in.size <= wire.MaxPiece {
		return true // the connection's windows bound it
	}
	memory, err := in.client.answers.Acquire(in.ctx, string(in.wanted.Account), 2*int64(in.size))
	if err != nil {
		in.rejectBusy()
		return false
	}
	in.memory = memory
	return true
}

func (in *inbound) rejectLarge(size string) {
	in.reject(http.StatusRequestEntityTooLarge, "TooLarge", fmt.Sprintf("the answer has %s, and may have %d: request less with a namespace or a selector", size,
		in.client.answerLimit()))
}

func (in *inbound) rejectBusy() {
	in.reject(http.StatusServiceUnavailable, "ServiceUnavailable",
		"the server has no memory for the answer: try again later, or request less with a namespace or a selector")
}

// reject ends the operation without its answer. What changed something may have taken effect.
func (in *inbound) reject(code int, reason, message string) {
	out := vedette.Outcome{ID: in.wanted.Operation, State: vedette.Failed, Status: code, Reason: reason, Message: message}
	if _, _, reads := in.state(); !reads {
		out.State = vedette.Lost
		out.Message = "it is unknown whether this took effect: " + message + ". Look at the object before you try again"
	}
	in.finishWith(out)
}

// complete decodes the outcome. The id is checked because it names what the history records.
func (in *inbound) complete() error {
	var encoded wire.Outcome
	if err := wire.Unmarshal(slices.Concat(in.pieces...), &encoded); err != nil {
		return fmt.Errorf("%w: %w", errBadPeer, err)
	}
	in.pieces = nil
	out := wire.ToOutcome(&encoded)
	if out.ID != in.wanted.Operation {
		return fmt.Errorf("%w: it sends the outcome of operation %.60q", errBadPeer, string(out.ID))
	}
	in.finishWith(out)
	return nil
}

// finishWith passes the outcome on, and lets the agent forget it.
func (in *inbound) finishWith(out vedette.Outcome) {
	in.count(string(out.State))
	in.put(&wire.OperationsDown{Message: &wire.OperationsDown_Forget{Forget: &wire.Forget{Id: string(in.wanted.Operation)}}})
	in.pass(dispatch.RemoteEvent{Outcome: out}) // after the forget is queued, because who receives it finishes the call
	in.memory.Release()
	in.finish()
}

// pass passes on the one event.
func (in *inbound) pass(e dispatch.RemoteEvent) {
	in.isEnded = true
	in.events <- e // has room
}

// handleLog takes a piece of a log, at the speed of its reader.
func (in *inbound) handleLog(p *peerproto.Piece) error {
	if _, isLogs, _ := in.state(); !isLogs || in.pieces != nil {
		return fmt.Errorf("%w: it sends a log that nobody asked for", errBadPeer)
	}
	if in.log == nil && !in.beginLog() {
		return nil
	}
	if _, err := in.log.Write(p.GetContent()); err != nil {
		return nil // the reader has closed it, and so ended the call
	}
	switch {
	case p.GetBrokeOff() != "":
		_ = in.log.CloseWithError(fmt.Errorf("%w: %s", wire.ErrIncompleteAnswer, vedette.CleanText(p.GetBrokeOff(), maxBrokeOff))) // never fails
	case p.GetLast():
		_ = in.log.Close() // never fails
	default:
		return nil
	}
	in.finish()
	return nil
}

// beginLog passes the log on. It reports false if nobody takes it any more.
func (in *inbound) beginLog() bool {
	reader, writer := io.Pipe()
	in.count(string(vedette.Done))
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.isClosed {
		return false
	}
	in.isLog = true
	in.log = writer
	in.pass(dispatch.RemoteEvent{Outcome: vedette.Outcome{ID: in.wanted.Operation, State: vedette.Done, Status: http.StatusOK,
		Stream: &remoteLog{reader, in.remoteAgent}}})
	return true
}

// end ends what has begun, because the call has ended.
func (in *inbound) end() {
	in.memory.Release()
	if in.log != nil {
		cause := context.Cause(in.ctx)
		if cause == nil || errors.Is(cause, context.Canceled) {
			cause = errors.New("the connection to the server that relays the log is lost")
		}
		_ = in.log.CloseWithError(fmt.Errorf("%w: %w", wire.ErrIncompleteAnswer, cause)) // never fails; does nothing if it has ended
	}
	if !in.isEnded {
		in.count("gone")
	}
	close(in.events)
}

// remoteLog is a log of an agent at another server.
type remoteLog struct {
	*io.PipeReader
	agent *remoteAgent
}

// Close closes the log, and ends the call at once: the other server may wait until somebody reads.
func (l *remoteLog) Close() error {
	err := l.PipeReader.Close()
	l.agent.cancel(nil)
	return err
}
