package outbox

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// mediumChange returns a bulk change of 64 KiB.
func mediumChange(i int) Change {
	return Change{Account: "a", Feed: pods, Priority: Bulk, Key: fmt.Sprint(i), Record: make([]byte, 64<<10-200)}
}

// fillWindow takes as much as possible and returns the bytes in flight.
func fillWindow(b *Box) int {
	for len(b.take(1<<30)) > 0 {
	}
	return b.Unacknowledged()
}

func TestSnapshotWindowFollowsAckLatency(t *testing.T) {
	for _, tt := range []struct {
		name        string
		rtt         time.Duration // between acknowledgements of half of what is on the way; 5 ms the first time
		least, most int           // bytes on the way in the end
	}{
		{"a fast server: the window grows", 6 * time.Millisecond, 2 << 20, maxWindow + 64<<10},
		{"a short queue: the window grows", 20 * time.Millisecond, 2 << 20, maxWindow + 64<<10},
		{"slow commits: the window shrinks", 200 * time.Millisecond, minWindow, minWindow + 64<<10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(64 << 20)
				open(b, 1, nil)
				n := 0
				rtt := 5 * time.Millisecond
				for range 30 {
					for ; b.Used() < 40<<20; n++ {
						putAll(t, b, mediumChange(n))
					}
					fillWindow(b)
					time.Sleep(rtt)
					b.Ack(b.acked + uint64(len(b.sent)/2)) // a commit holds half of what is on the way
					rtt = tt.rtt
				}
				if got := fillWindow(b); got < tt.least || got > tt.most {
					t.Errorf("got %d bytes in flight, want %d to %d", got, tt.least, tt.most)
				}
			})
		})
	}
}

func TestLiveChangesOvertakeFullSnapshotWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(64 << 20)
		open(b, 1, nil)
		for i := range 100 {
			putAll(t, b, mediumChange(i))
		}
		fillWindow(b)
		var got []Change
		go func() { got, _ = b.Take(context.Background(), 1<<20) }()
		synctest.Wait()
		if got != nil {
			t.Fatalf("got %d bulk changes beyond the window, want none", len(got))
		}
		putAll(t, b, change(jobs, Live, "j", "5"))
		synctest.Wait()
		if records(got) != "j@5" {
			t.Errorf("got %d changes, want the live one", len(got))
		}
	})
}

func TestAckReopensSnapshotWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(64 << 20)
		open(b, 1, nil)
		for i := range 100 {
			putAll(t, b, mediumChange(i))
		}
		fillWindow(b)
		var got []Change
		go func() { got, _ = b.Take(context.Background(), 1<<20) }()
		synctest.Wait()
		b.Ack(4)
		synctest.Wait()
		if len(got) == 0 {
			t.Error("got no change after an acknowledgement, want one")
		}
	})
}
