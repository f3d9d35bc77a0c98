package journey

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/desk"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/agent/uplink"
	pb "github.com/vedette-io/vedette/wire"
)

// scribe is an agent whose only account has a pod that writes what the test says.
type scribe struct {
	*wired
	log    func() io.ReadCloser
	seated chan struct{} // closed once the account is the scribe's
}

func (s *scribe) Connected(uplink.ServerSettings) {}
func (s *scribe) Indexed(uplink.Index)            {}
func (s *scribe) Assigned(a uplink.Assignment) {
	if a.Role == pb.Assignment_ROLE_CACHER {
		s.seated <- struct{}{}
	}
}

// write connects an agent whose logs are what log returns.
func write(t *testing.T, log func() io.ReadCloser) *scribe {
	t.Helper()
	s := &scribe{wired: wireServer(t), log: log, seated: make(chan struct{}, 16)}
	var link *uplink.Uplink
	pad := desk.New(desk.Config{}, func(_ context.Context, op vedette.Operation) vedette.Outcome {
		return vedette.Outcome{ID: op.ID, State: vedette.Done, Status: 200, Stream: s.log()}
	}, func(out vedette.Outcome) { link.Answer(out) })
	link = uplink.New(s.uplink(), outbox.New(1<<20), s, pad, s.wired.log)
	if err := link.Register(vedette.Account{Name: "one", Cluster: vedette.Cluster{UID: "u"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running(t, pad.Run))
	t.Cleanup(running(t, link.Run))
	<-s.seated
	return s
}

func (s *scribe) read() io.ReadCloser {
	s.t.Helper()
	return s.done(vedette.LogsArgs{Target: vedette.Target{Namespace: "n", Name: "p"}}).Stream
}

func TestLongLog(t *testing.T) {
	text := bytes.Repeat([]byte("2026-11-21T00:00:00Z INFO a line as programs write them\n"), 20_000_000/57)
	s := write(t, func() io.ReadCloser { return io.NopCloser(bytes.NewReader(text)) })
	log := s.read()
	defer log.Close()
	got, err := io.ReadAll(log)
	if err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d of %d bytes came: %v", len(got), len(text), err)
	}
}

// TestFollowedLog reads a log line by line as it is written, and leaves: the log
// must be closed where it is written, though nothing more is.
func TestFollowedLog(t *testing.T) {
	r, w := io.Pipe()
	s := write(t, func() io.ReadCloser { return r })
	log := s.read()
	lines := bufio.NewReader(log)
	for _, line := range []string{"one\n", "two\n", "three\n"} {
		if _, err := io.WriteString(w, line); err != nil {
			t.Fatal(err)
		}
		if got, err := lines.ReadString('\n'); got != line || err != nil {
			t.Fatalf("got %q, %v", got, err)
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

func TestLogBreaksOff(t *testing.T) {
	s := write(t, func() io.ReadCloser {
		r, w := io.Pipe()
		go func() {
			_, _ = io.WriteString(w, "one\n")
			_ = w.CloseWithError(errors.New("the kubelet hung up"))
		}()
		return r
	})
	log := s.read()
	defer log.Close()
	got, err := io.ReadAll(log)
	if string(got) != "one\n" || !errors.Is(err, pb.ErrIncompleteAnswer) {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestLogOfLostConnection ends a log with an error, not as if it were complete.
func TestLogOfLostConnection(t *testing.T) {
	r, w := io.Pipe()
	s := write(t, func() io.ReadCloser { return r })
	log := s.read()
	defer log.Close()
	if _, err := io.WriteString(w, "one\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := bufio.NewReader(log).ReadString('\n'); got != "one\n" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	s.proxy.Cut()
	if _, err := io.ReadAll(log); err == nil {
		t.Error("the log ended as if it were complete")
	}
}
