package dispatch

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/lease"
)

// written is the outcome of an operation that has written an object.
var written = vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, CacheObject: &vedette.Object{Key: webKey, ResourceVersion: "12"}}

// TestOutcomeOfAServerThatStoodStill freezes a server while it stores what an operation has written.
func TestOutcomeOfAServerThatStoodStill(t *testing.T) {
	for _, tt := range []struct {
		name   string
		lease  error // of the server after that
		isDown bool  // the database after that
		want   string
	}{
		{"it stores it afterwards", nil, false, "stored Deployment.apps shop/web at 12\nop done 200 "},
		{"it has lost its lease", lease.ErrLost, true, "op lost 504 the agent has answered that the operation is done, but this server could not store it"},
		{"the database is away", vedette.Errorf(vedette.Unavailable, "the database is away"), true, "op done 200 "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runScenario(t, func(s *scenario) {
				a := s.connect("a", "1")
				s.start("op", scale)
				s.takeLog()
				s.SetLease(func(context.Context) error { return tt.lease })
				s.mu.Lock()
				s.freeze, s.databaseDown = 8*time.Second, tt.isDown
				s.mu.Unlock()
				a.answer(written)
				time.Sleep(15 * time.Second)
				if got, found := strings.CutPrefix(s.takeLog(), "a/1: forget op\n"); !found || !strings.HasPrefix(got, tt.want) {
					t.Errorf("got the events\n%s\nwant\n%s", got, tt.want)
				}
				s.setDatabaseDown(false)
				time.Sleep(time.Minute) // the end is recorded
			})
		})
	}
}

// TestEndIsRecordedAfterAPause freezes a server while it stores what an operation has written. Another server has stored that meanwhile. The
// caller is answered when the end of the operation is recorded.
func TestEndIsRecordedAfterAPause(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.start("op", scale)
		s.takeLog()
		s.mu.Lock()
		s.endDelay, s.elsewhere = 100*time.Millisecond, true
		s.cachers["prod"] = nil
		s.pause = 4 * time.Second // whenever it looks for the cacher
		s.mu.Unlock()
		a.answer(written)
		time.Sleep(4*time.Second + 50*time.Millisecond)
		s.expectLog("a/1: forget op")
		time.Sleep(100 * time.Millisecond)
		s.expectLog("op done 200 ")
	})
}

// TestRelayThatCannotStore lets the server whose agent has executed an operation fail to store what that has written. The server that has
// accepted the operation waits until it is stored.
func TestRelayThatCannotStore(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		relay := s.relay("op", restart)
		s.takeLog()
		s.setDatabaseDown(true)
		a.answer(written)
		e := <-relay.Events()
		if out := e.Outcome; out.State != vedette.Done || out.CacheObject != nil || out.Awaited == nil || *out.Awaited != (vedette.ObjectVersion{Key: webKey, Version: "12"}) {
			t.Errorf("got %+v, want that its object is awaited", out)
		}
		relay.Close()
	})
	runScenario(t, func(s *scenario) {
		r := s.addRemote()
		s.start("op", scale)
		a := r.offer("s2", "1")
		s.takeLog()
		out := written
		out.DropCacheObject()
		a.out <- RemoteEvent{Outcome: out}
		time.Sleep(maxStoredPoll)
		s.expectLog("s2: close")
		s.mu.Lock()
		s.elsewhere = true
		s.mu.Unlock()
		time.Sleep(maxStoredPoll)
		s.expectLog("op done 200 ")
	})
}
