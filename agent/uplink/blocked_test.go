package uplink

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/wire"
)

// fullStream is to a server that has no room for changes.
type fullStream struct {
	grpc.BidiStreamingClient[wire.AgentMessage, wire.ServerMessage]
	waits, room chan struct{}
}

func (s fullStream) Send(*wire.AgentMessage) error {
	close(s.waits)
	<-s.room
	return nil
}

// TestOutcomesPassWhatWaits holds that operations are answered while something else is
// told to a server that has no room for it, as while its database hangs.
func TestOutcomesPassWhatWaits(t *testing.T) {
	forgotten := forgetful{forgotten: make(chan vedette.OperationID, 1)}
	u := New(Config{}, outbox.New(1<<20), nil, forgotten, slog.New(slog.DiscardHandler))
	stream := fullStream{waits: make(chan struct{}), room: make(chan struct{})}
	u.link = newLink(u)
	u.link.stream = stream
	go u.Trouble("prod", "the API server does not answer")
	<-stream.waits
	defer close(stream.room)
	go u.Answer(vedette.Outcome{ID: "1", Stream: io.NopCloser(nil)})
	select {
	case <-forgotten.forgotten:
	case <-time.After(20 * time.Second):
		t.Error("the outcome waits")
	}
}
