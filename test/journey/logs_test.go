package journey

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/executor"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/agent/uplink"
	pb "github.com/vedette-io/vedette/wire"
)

// logAgent is an agent whose only account has a pod with a log that the test writes.
type logAgent struct {
	*operationsEnv
	log      func() io.ReadCloser
	assigned chan struct{} // closed once the agent is the account's cacher
}

func (s *logAgent) Connected(uplink.ServerSettings) {}
func (s *logAgent) Indexed(uplink.Index)            {}

// VerifyAnswered implements the uplink's handler. Nothing is verified.
func (s *logAgent) VerifyAnswered(uplink.VerifyAnswer) {}
func (s *logAgent) Assigned(a uplink.Assignment) {
	if a.Role == pb.Assignment_ROLE_CACHER {
		s.assigned <- struct{}{}
	}
}

// logExecutor is the executor as the uplink needs it.
type logExecutor struct{ *executor.Executor }

// Submit starts an operation.
func (x logExecutor) Submit(op vedette.Operation, d *uplink.Delivery) { x.Executor.Submit(op, d) }

// newLogAgent connects an agent whose logs are what log returns.
func newLogAgent(t *testing.T, log func() io.ReadCloser) *logAgent {
	t.Helper()
	s := &logAgent{operationsEnv: newOperationsServer(t), log: log, assigned: make(chan struct{}, 16)}
	var link *uplink.Uplink
	exec := executor.New(executor.Config{}, func(_ context.Context, op vedette.Operation, _ *executor.Control) vedette.Outcome {
		return vedette.Outcome{ID: op.ID, State: vedette.Done, Status: 200, Stream: s.log()}
	}, func(out vedette.Outcome) { link.Answer(out) })
	link = uplink.New(s.uplink(), outbox.New(1<<20), s, logExecutor{exec}, s.operationsEnv.log)
	if err := link.Register(vedette.Account{Name: "one", Cluster: vedette.Cluster{UID: "u"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runInBackground(t, exec.Run))
	t.Cleanup(runInBackground(t, link.Run))
	<-s.assigned
	return s
}

func (s *logAgent) readLog() io.ReadCloser {
	s.t.Helper()
	return s.mustDo(vedette.LogsArgs{Target: vedette.Target{Namespace: "n", Name: "p"}}).Stream
}

func TestLongLogArrivesWhole(t *testing.T) {
	text := bytes.Repeat([]byte("2026-11-21T00:00:00Z INFO a line as programs write them\n"), 20_000_000/57)
	s := newLogAgent(t, func() io.ReadCloser { return io.NopCloser(bytes.NewReader(text)) })
	log := s.readLog()
	defer log.Close()
	got, err := io.ReadAll(log)
	if err != nil || !bytes.Equal(got, text) {
		t.Errorf("got %d of %d bytes, error %v", len(got), len(text), err)
	}
}

// TestFollowedLogEndsWithItsReader reads a log line by line as it is written, and disconnects. The log must then be
// closed on the agent's side, even if no more is written.
func TestFollowedLogEndsWithItsReader(t *testing.T) {
	r, w := io.Pipe()
	s := newLogAgent(t, func() io.ReadCloser { return r })
	log := s.readLog()
	lines := bufio.NewReader(log)
	for _, line := range []string{"one\n", "two\n", "three\n"} {
		if _, err := io.WriteString(w, line); err != nil {
			t.Fatal(err)
		}
		if got, err := lines.ReadString('\n'); got != line || err != nil {
			t.Fatalf("got %q, error %v", got, err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for { // until the pipe is closed at the other end
		if _, err := io.WriteString(w, "nobody reads this\n"); errors.Is(err, io.ErrClosedPipe) {
			return
		}
	}
}

func TestInterruptedLogReturnsError(t *testing.T) {
	s := newLogAgent(t, func() io.ReadCloser {
		r, w := io.Pipe()
		go func() {
			_, _ = io.WriteString(w, "one\n")
			_ = w.CloseWithError(errors.New("the kubelet hung up"))
		}()
		return r
	})
	log := s.readLog()
	defer log.Close()
	got, err := io.ReadAll(log)
	if string(got) != "one\n" || !errors.Is(err, pb.ErrIncompleteAnswer) {
		t.Errorf("got %q, error %v", got, err)
	}
}

// TestLogOfLostConnectionReturnsError checks that a log whose agent is lost ends with an error, and
// does not seem complete.
func TestLogOfLostConnectionReturnsError(t *testing.T) {
	r, w := io.Pipe()
	s := newLogAgent(t, func() io.ReadCloser { return r })
	log := s.readLog()
	defer log.Close()
	if _, err := io.WriteString(w, "one\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := bufio.NewReader(log).ReadString('\n'); got != "one\n" || err != nil {
		t.Fatalf("got %q, error %v", got, err)
	}
	s.proxy.Cut()
	if _, err := io.ReadAll(log); err == nil {
		t.Error("the log ended without an error")
	}
}
