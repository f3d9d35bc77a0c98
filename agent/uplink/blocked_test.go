package uplink

import (
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/wire"
)

// blockedStream is a stream to a server without room for changes.
type blockedStream struct {
	grpc.BidiStreamingClient[wire.AgentMessage, wire.ServerMessage]
	sending, unblock chan struct{}
}

func (s blockedStream) Send(*wire.AgentMessage) error {
	close(s.sending)
	<-s.unblock
	return nil
}

// TestOutcomesAreNotBlockedByOtherSends checks that outcomes are sent while another message
// waits for room at the server, for example because the server's database hangs.
func TestOutcomesAreNotBlockedByOtherSends(t *testing.T) {
	recorder := forgetRecorder{forgotten: make(chan vedette.OperationID, 1)}
	u := New(Config{}, outbox.New(1<<20), nil, recorder, slog.New(slog.DiscardHandler))
	stream := blockedStream{sending: make(chan struct{}), unblock: make(chan struct{})}
	u.link = newLink(u)
	u.link.stream = stream
	go u.ReportAccountError("prod", errors.New("the API server does not answer"))
	<-stream.sending
	defer close(stream.unblock)
	go u.Answer(vedette.Outcome{ID: "1", Stream: io.NopCloser(nil)})
	select {
	case <-recorder.forgotten:
	case <-time.After(time.Minute):
		t.Error("the outcome is blocked")
	}
}
