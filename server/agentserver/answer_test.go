package agentserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// TestUnreadLogIsClosed checks that a log is closed if its reader reads nothing for a
// minute, that both sides receive the reason, and that a slow reader and a silent log
// are not affected.
func TestUnreadLogIsClosed(t *testing.T) {
	t.Run("the reader stops", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			out, in := io.Pipe()
			start, log := time.Now(), strings.NewReader(strings.Repeat("x", 1<<20))
			done := make(chan error, 1)
			go func() { _, err := io.Copy(timeoutWriter{in}, log); done <- err }()
			if _, err := io.ReadFull(out, make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, errLogReadTimeout) || time.Since(start) != logReadTimeout {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
			if _, err := io.ReadAll(out); !errors.Is(err, errLogReadTimeout) {
				t.Errorf("the reader: got %v", err)
			}
		})
	})
	t.Run("the reader is slow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			out, in := io.Pipe()
			go func() {
				for range 100 {
					_, _ = timeoutWriter{in}.Write([]byte("line\n"))
					time.Sleep(time.Hour) // and the log silent
				}
				_ = in.Close()
			}()
			lines := 0
			for buf := make([]byte, 5); ; lines++ {
				time.Sleep(logReadTimeout - time.Second)
				if _, err := io.ReadFull(out, buf); err != nil {
					break
				}
			}
			if lines != 100 {
				t.Errorf("got %d lines, want 100", lines)
			}
		})
	})
}

// answersOfAgent records the outcomes of one agent's operations.
type answersOfAgent struct {
	outcomes chan vedette.Outcome
	encoded  chan io.ReadCloser // nil if outcomes are not passed on
}

func (a answersOfAgent) PassesOn(vedette.OperationID) bool { return a.encoded != nil }

func (a answersOfAgent) HandleEncoded(_ vedette.OperationID, out io.ReadCloser) bool {
	a.encoded <- out
	return true
}

func (a answersOfAgent) Claim(vedette.OperationID, bool) (release func(), ok bool) {
	return func() {}, true
}

func (a answersOfAgent) HandleOutcome(out vedette.Outcome) bool {
	select {
	case a.outcomes <- out:
		return true
	default:
		return false
	}
}

// answerStream is a stream on which an agent sends an answer that does not end.
type answerStream struct {
	grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]
	ctx    context.Context
	pieces chan *wire.AnswerPiece
}

func (s answerStream) Context() context.Context { return s.ctx }

func (s answerStream) Recv() (*wire.AnswerPiece, error) {
	select {
	case piece := <-s.pieces:
		return piece, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

// TestLargeAnswersEndBeforeTheirSessions checks that where memory is short, a large answer of the host that uses the most
// ends, with the outcome of its operation, and not the session, which has the changes of all accounts of its agent.
func TestLargeAnswersEndBeforeTheirSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		srv := &Server{memory: newMemoryBudget(16 << 20), sessions: map[string]*session{}}
		srv.cfg.defaults()
		s := &session{server: srv, token: "t", joined: make(chan struct{}), ctx: ctx}
		close(s.joined)
		srv.sessions["t"] = s
		s.share = srv.memory.open("agent", func(err error) { t.Errorf("the session ends: %v", err) })
		if err := s.share.reserve(ctx, 2<<20); err != nil {
			t.Fatal(err)
		}
		agent := answersOfAgent{outcomes: make(chan vedette.Outcome, 1)}
		s.operations.Store(&operationStream{agent: agent, share: s.share})
		stream := answerStream{ctx: ctx, pieces: make(chan *wire.AnswerPiece, 100)}
		w := wire.NewAnswerWriter(&wire.AnswerPiece{Session: "t", Operation: "1"}, func(piece *wire.AnswerPiece) error {
			stream.pieces <- proto.CloneOf(piece)
			return nil
		})
		_, _ = w.Write(make([]byte, 5<<20))
		_ = w.Flush()
		ended := make(chan error, 1)
		go func() { ended <- operationsService{Server: srv}.Answer(stream) }()
		synctest.Wait()
		other := srv.memory.open("other", func(error) {})
		if err := other.reserve(ctx, 4<<20); err != nil {
			t.Errorf("a session of another host: got %v, want memory", err)
		}
		if out := <-agent.outcomes; out.ID != "1" || out.State != vedette.Lost || out.Status != http.StatusServiceUnavailable {
			t.Errorf("got outcome %+v, want one that is lost", out)
		}
		if err := <-ended; status.Code(err) != codes.Unavailable {
			t.Errorf("the answer ended with %v, want Unavailable", err)
		}
		if used := srv.memory.bySource["agent"]; used != 2<<20 {
			t.Errorf("the agent's host still uses %d bytes, want those of its session", used)
		}
	})
}

// TestAnswerThatNeverHasItsMemory checks that with the smallest agents.memoryBytes, an answer that is too large is
// reported at once, although the memory that it would take is in use by others, instead of at its deadline.
func TestAnswerThatNeverHasItsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		cfg := Config{MemoryBytes: 80 << 20}
		memory := newMemoryBudget(cfg.MemoryBytes)
		if err := memory.open("others", func(err error) { t.Errorf("a session ends: %v", err) }).reserve(t.Context(), 8<<20); err != nil {
			t.Fatal(err)
		}
		agent := answersOfAgent{outcomes: make(chan vedette.Outcome, 1)}
		a := answer{agent: agent, share: memory.openAnswer("agent", func(err error) { t.Errorf("the answer ends: %v", err) }), id: "1", limit: cfg.answerLimit()}
		if err := a.receiveOutcome(t.Context(), io.LimitReader(zeros{}, maxAnswerBytes)); err != nil {
			t.Error(err)
		}
		if out := <-agent.outcomes; out.Reason != "TooLarge" || time.Since(began) != 0 {
			t.Errorf("got outcome %+v after %v, want TooLarge at once", out, time.Since(began))
		}
	})
}

// zeros reads as zeros without end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestAnswersForOtherServersAreNotHeld passes on an outcome that is larger than the memory of agents.
func TestAnswersForOtherServersAreNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &Server{memory: newMemoryBudget(2 << 20)}
		srv.cfg.defaults()
		agent := answersOfAgent{encoded: make(chan io.ReadCloser, 1)}
		share := srv.memory.openAnswer("agent", func(err error) { t.Errorf("the answer ends: %v", err) })
		defer share.close()
		pieces := make(chan *wire.AnswerPiece)
		list := []byte(strings.Repeat("object", 1<<20))
		go func() {
			w := wire.NewAnswerWriter(&wire.AnswerPiece{Operation: "1"}, func(piece *wire.AnswerPiece) error {
				pieces <- proto.CloneOf(piece)
				return nil
			})
			if _, err := w.Write(list); err != nil || w.Close(nil) != nil {
				t.Error(err)
			}
			close(pieces)
		}()
		next := func() (*wire.AnswerPiece, error) {
			if piece, ok := <-pieces; ok {
				return piece, nil
			}
			return nil, io.EOF
		}
		first, err := next()
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- answer{agent, share, "1", false, 1 << 20}.receive(t.Context(), first, next) }()
		got, err := io.ReadAll(<-agent.encoded)
		if err != nil || string(got) != string(list) {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
