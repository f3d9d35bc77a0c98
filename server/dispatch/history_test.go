package dispatch

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

// TestEndIsRecordedBeforeItIsReported checks that a caller finds its outcome in the
// history, whatever happens to the server.
func TestEndIsRecordedBeforeItIsReported(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.start("op", scale)
		s.takeLog()
		s.setDatabaseDown(true)
		a.answerDone("op")
		s.expectLog("a/1: forget op")
		s.setDatabaseDown(false)
		time.Sleep(maxWriteWait - time.Millisecond)
		s.expectLog("op done 200 ")
		if row := s.row("op"); row.State != vedette.Done {
			t.Errorf("got %+v in the history", row)
		}
	})
}

func TestEndIsRecordedAfterDatabaseOutage(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.start("op", scale)
		s.takeLog()
		s.setDatabaseDown(true)
		a.answerDone("op")
		time.Sleep(maxWriteWait)
		s.expectLog("a/1: forget op", "op done 200 ") // the caller does not wait forever
		time.Sleep(time.Hour)
		s.setDatabaseDown(false)
		time.Sleep(time.Second)
		if row := s.row("op"); row.State != vedette.Done {
			t.Errorf("got %+v in the history", row)
		}
	})
}

// TestEndIsRecordedDuringPurge checks that callers do not wait until a large history is purged.
func TestEndIsRecordedDuringPurge(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.mu.Lock()
		s.purgeDelay = time.Hour
		s.mu.Unlock()
		time.Sleep(11 * time.Minute)
		a := s.connect("a", "1")
		s.start("op", scale)
		s.takeLog()
		a.answerDone("op")
		s.expectLog("a/1: forget op", "op done 200 ")
		if row := s.row("op"); row.State != vedette.Done {
			t.Errorf("got %+v in the history", row)
		}
	})
}

func TestInvalidEndDoesNotBlockOthers(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		ids := []vedette.OperationID{"one", "bad", "two", "three", "bad-too"}
		for _, id := range ids {
			s.start(id, get)
		}
		s.setDatabaseDown(true) // so that all wait in one batch
		for _, id := range ids {
			a.answerDone(id)
		}
		synctest.Wait()
		s.setDatabaseDown(false)
		time.Sleep(time.Second)
		for _, id := range []vedette.OperationID{"one", "two", "three"} {
			if row := s.row(id); row.State != vedette.Done {
				t.Errorf("%s: got %+v in the history", id, row)
			}
		}
	})
}

// TestRefusedOperationIsRecordedAsEnded checks that an operation does not stay pending
// in the history if recording it failed.
func TestRefusedOperationIsRecordedAsEnded(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.connect("a", "1")
		s.setDatabaseDown(true)
		s.start("op", scale)
		s.takeLog()
		s.setDatabaseDown(false)
		s.start("op", scale) // its end is not noted yet
		if got := s.takeLog(); got != "op failed 409 operation op has already ended" {
			t.Error(got)
		}
		time.Sleep(time.Second)
		if row := s.row("op"); row.State != vedette.Failed || !strings.Contains(row.Message, "did not send it") {
			t.Errorf("got %+v in the history", row)
		}
	})
}

// TestHangingDatabaseEndsAtTheDeadline checks that a hanging database delays a caller no longer than the
// operation may take.
func TestHangingDatabaseEndsAtTheDeadline(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.connect("a", "1")
		s.databaseHangs = true
		start := time.Now()
		out := s.Execute(s.t.Context(), vedette.Operation{ID: "op", Account: "prod", Deadline: start.Add(2 * time.Second), Args: scale})
		if elapsed := time.Since(start); out.State != vedette.Failed || elapsed > 2*time.Second {
			t.Errorf("got %+v after %v", out, elapsed)
		}
	})
}
