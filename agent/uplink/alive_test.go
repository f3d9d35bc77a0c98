package uplink

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/wire"
)

// aliveRecorder is a stream that records when it got Alive, and with which interval.
type aliveRecorder struct {
	grpc.BidiStreamingClient[wire.AgentMessage, wire.ServerMessage]
	began time.Time
	mu    sync.Mutex
	at    []time.Duration
	sent  []uint32
}

func (r *aliveRecorder) Send(m *wire.AgentMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, time.Since(r.began))
	r.sent = append(r.sent, m.GetAlive().GetIntervalMillis())
	return nil
}

// take returns what arrived since the last call.
func (r *aliveRecorder) take() (at []time.Duration, sent []uint32) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	at, sent, r.at, r.sent = r.at, r.sent, nil, nil
	return at, sent
}

// TestAgentShowsThatItIsAlive follows what a server asks for in its heartbeats: nothing, an interval,
// another one, the same again, and nothing.
func TestAgentShowsThatItIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := &aliveRecorder{began: time.Now()}
		l := newLink(New(Config{}, outbox.New(1<<20), nil, nil, slog.New(slog.DiscardHandler)))
		l.stream = stream
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.sendAlive(ctx) }()
		for _, tt := range []struct {
			asked uint32
			want  []uint32 // within two seconds after the heartbeat
		}{
			{0, nil},
			{500, []uint32{500, 500, 500, 500}},
			{1000, []uint32{1000, 1000}},
			{1000, []uint32{1000}},                // no change, so not at once
			{1, slices.Repeat([]uint32{100}, 20)}, // too often
			{0, []uint32{0}},
			{0, nil},
		} {
			if err := l.handle(&wire.ServerMessage{Message: &wire.ServerMessage_Heartbeat{Heartbeat: &wire.Heartbeat{AliveMillis: tt.asked}}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2*time.Second - time.Millisecond)
			at, got := stream.take()
			if !slices.Equal(got, tt.want) {
				t.Errorf("asked for %d ms: got %v at %v, want %v", tt.asked, got, at, tt.want)
			}
			time.Sleep(time.Millisecond)
			stream.take() // what belongs to neither row
		}
		cancel()
		<-done
	})
}
