package uplink

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/wire"
)

// acceptingStream is a stream to a server that takes everything at once.
type acceptingStream struct {
	grpc.BidiStreamingClient[wire.AgentMessage, wire.ServerMessage]
}

func (acceptingStream) Send(*wire.AgentMessage) error { return nil }

// batchRecorder records when batches were sent and how many changes they had.
type batchRecorder struct {
	noObserver
	began   time.Time
	batches []string
}

func (r *batchRecorder) Sent(changes []outbox.Change, _ int) {
	r.batches = append(r.batches, fmt.Sprintf("%d after %v", len(changes), time.Since(r.began)))
}

// sendAll runs a link on an outbox while put fills it, and returns the batches.
func sendAll(t *testing.T, put func(put func(name string, size int, p outbox.Priority))) []string {
	var batches []string
	synctest.Test(t, func(t *testing.T) {
		box := outbox.New(8 << 20)
		box.Recall("prod", 1)
		box.Open("prod", 1, nil)
		recorder := &batchRecorder{began: time.Now()}
		l := newLink(New(Config{Observer: recorder}, box, nil, nil, slog.New(slog.DiscardHandler)))
		l.stream, l.credit = acceptingStream{}, 8<<20
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.sendFromOutbox(ctx) }()
		put(func(name string, size int, p outbox.Priority) {
			err := box.Put(ctx, outbox.Change{Account: "prod", Feed: vedette.Feed{Kind: vedette.Kind{Name: name}}, Priority: p, Record: make([]byte, size)})
			if err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Minute)
		cancel()
		<-done
		batches = recorder.batches
	})
	return batches
}

// TestChangesAreCollected checks that a change that comes alone is sent at once, and that others are
// sent together.
func TestChangesAreCollected(t *testing.T) {
	got := sendAll(t, func(put func(string, int, outbox.Priority)) {
		put("Pod", 5000, outbox.Live)
		for range 5 {
			time.Sleep(1500 * time.Microsecond)
			put("Service", 100, outbox.Live)
		}
		time.Sleep(time.Second)
		put("Pod", 5000, outbox.Live)
	})
	if want := []string{"1 after 0s", "2 after 4ms", "3 after 12ms", "1 after 1.0075s"}; !slices.Equal(got, want) {
		t.Errorf("got batches of %q, want %q", got, want)
	}
}

// TestPauseAfterManyChanges checks that an agent of many changes sends fewer batches, and that no change
// waits for long.
func TestPauseAfterManyChanges(t *testing.T) {
	for _, tt := range []struct {
		live, bulk int
		want       time.Duration
	}{{1, 0, 4 * time.Millisecond}, {3, 0, 12 * time.Millisecond}, {30, 0, 16 * time.Millisecond},
		{0, 30, 4 * time.Millisecond}, {2, 30, 8 * time.Millisecond}} {
		var sent []outbox.Change
		for range tt.live {
			sent = append(sent, outbox.Change{Priority: outbox.Live, Record: make([]byte, 100)})
		}
		for range tt.bulk {
			sent = append(sent, outbox.Change{Priority: outbox.Bulk, Record: make([]byte, 100)})
		}
		if got := pauseAfter(sent); got != tt.want {
			t.Errorf("got %v after %d live and %d other changes, want %v", got, tt.live, tt.bulk, tt.want)
		}
	}
}

// TestLargeBatchesAreNotDelayed checks that no time passes between the batches of a first sync.
func TestLargeBatchesAreNotDelayed(t *testing.T) {
	got := sendAll(t, func(put func(string, int, outbox.Priority)) {
		for range 9 {
			put("Pod", smallBatch+1, outbox.Bulk)
		}
	})
	changes := 0
	for _, batch := range got {
		var n int
		var after string
		if _, err := fmt.Sscanf(batch, "%d after %s", &n, &after); err != nil || after != "0s" {
			t.Errorf("got batch of %q, want no delay", batch)
		}
		changes += n
	}
	if changes != 9 {
		t.Errorf("got %d changes in %q, want 9", changes, got)
	}
}
