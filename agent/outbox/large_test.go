package outbox

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

func large(feed vedette.Feed, priority Priority, key, mark string) Change {
	c := change(feed, priority, key, mark)
	c.Record = append(c.Record, make([]byte, largeChange)...)
	return c
}

// keys returns the keys of changes.
func keys(changes []Change) (all string) {
	for _, c := range changes {
		all += c.Key + " "
	}
	return all
}

// expectTake takes once, without waiting.
func expectTake(t *testing.T, b *Box, when, want string) {
	t.Helper()
	if got := keys(b.take(128 << 10)); got != want {
		t.Errorf("%s: took %q, want %q", when, got, want)
	}
}

func TestLargeChangesLeaveLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(8 << 20)
		open(b, 1, nil)
		putAll(t, b, large(pods, Live, "large", "1"), change(jobs, Bulk, "bulk", ""), change(jobs, Live, "live", "2"))
		expectTake(t, b, "first", "bulk live ")
		expectTake(t, b, "then", "large ")
		putAll(t, b, large(pods, Live, "larger", "3"))
		for range 10 { // others come all the time
			putAll(t, b, change(jobs, Live, "x", "4"))
			expectTake(t, b, "others", "x ")
			time.Sleep(maxLargeWait / 10)
		}
		putAll(t, b, change(jobs, Live, "x", "5"))
		time.Sleep(time.Millisecond)
		expectTake(t, b, "when it has waited long enough", "larger ")
		expectTake(t, b, "afterwards", "x ")
	})
}

// TestLargeChangesThatAreLostWait checks that a large change with which each connection is lost keeps no other change from
// leaving, and leaves itself at ever greater intervals.
func TestLargeChangesThatAreLostWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(4 << 20)
		open(b, 1, nil)
		putAll(t, b, Change{Account: "a", Feed: pods, Priority: Live, Key: "giant", Mark: "1", Record: make([]byte, 5<<20)})
		expectTake(t, b, "first", "giant ")
		marks := map[vedette.Feed]vedette.Mark{pods: "0", jobs: "1"}
		b.accounts["a"].queues[pods].acked = "0"
		putAll(t, b, change(jobs, Live, "0", "1"))
		expectTake(t, b, "an other change", "0 ")
		for i, want := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute} {
			b.Rewind()
			lost := time.Now()
			term := vedette.Term(i + 2)
			if restart := open(b, term, marks); len(restart) != 0 {
				t.Fatalf("restarts %v", restart)
			}
			for range 100 { // more than the box may hold, with acknowledgements
				putAll(t, b, Change{Account: "a", Feed: jobs, Priority: Live, Key: "x", Record: make([]byte, 100<<10)})
				expectTake(t, b, "other changes", "x ")
				b.Ack(1 << 20)
			}
			taken, err := b.Take(t.Context(), 128<<10)
			if got := time.Since(lost); err != nil || keys(taken) != "giant " || got != want {
				t.Errorf("loss %d: took %q after %v, want the giant after %v", i+1, keys(taken), got, want)
			}
		}
		b.Ack(1 << 20)
		putAll(t, b, large(pods, Live, "giant", "2"))
		expectTake(t, b, "after an acknowledgement", "giant ")
		b.Rewind()
		if b.large.backoff != minLargeBackoff {
			t.Errorf("got a backoff of %v, want the least", b.large.backoff)
		}
	})
}
