package dispatch

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

// Whoever is told how an operation ended reads the same in the history, whatever
// happens to the server.
func TestEndsAreNotedBeforeTheyAreTold(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		s.do("op", scale)
		s.heard()
		s.setDown(true)
		a.done("op")
		s.want("a/1 may forget op")
		s.setDown(false)
		time.Sleep(mostWriting - time.Millisecond)
		s.want("op done 200 ")
		if row := s.row("op"); row.State != vedette.Done {
			t.Errorf("the history says %+v", row)
		}
	})
}

func TestEndsOutliveADatabaseThatIsAway(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		s.do("op", scale)
		s.heard()
		s.setDown(true)
		a.done("op")
		time.Sleep(mostWriting)
		s.want("a/1 may forget op", "op done 200 ") // nobody is kept waiting for ever
		time.Sleep(time.Hour)
		s.setDown(false)
		time.Sleep(time.Second)
		if row := s.row("op"); row.State != vedette.Done {
			t.Errorf("the history says %+v", row)
		}
	})
}

func TestABadEndTakesNoOtherWithIt(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		ids := []vedette.OperationID{"one", "bad", "two", "three", "bad-too"}
		for _, id := range ids {
			s.do(id, read)
		}
		s.setDown(true) // so that all wait in one batch
		for _, id := range ids {
			a.done(id)
		}
		synctest.Wait()
		s.setDown(false)
		time.Sleep(time.Second)
		for _, id := range []vedette.OperationID{"one", "two", "three"} {
			if row := s.row(id); row.State != vedette.Done {
				t.Errorf("the history says of %s: %+v", id, row)
			}
		}
	})
}

// An operation that could not be noted may be in the history all the same, and must
// not be pending there for ever.
func TestWhatIsNotAcceptedHasEnded(t *testing.T) {
	onStage(t, func(s *stage) {
		s.connect("a", "1")
		s.setDown(true)
		s.do("op", scale)
		s.heard()
		s.setDown(false)
		s.do("op", scale) // its end is not noted yet
		if got := s.heard(); got != "op failed 409 the operation op has ended before" {
			t.Error(got)
		}
		time.Sleep(time.Second)
		if row := s.row("op"); row.State != vedette.Failed || !strings.Contains(row.Message, "did not send it") {
			t.Errorf("the history says %+v", row)
		}
	})
}

// A database that hangs keeps nobody waiting for longer than the operation may take.
func TestDatabaseHangs(t *testing.T) {
	onStage(t, func(s *stage) {
		s.connect("a", "1")
		s.hangs = true
		began := time.Now()
		out := s.Execute(s.t.Context(), vedette.Operation{ID: "op", Account: "prod", Deadline: began.Add(2 * time.Second), Args: scale})
		if took := time.Since(began); out.State != vedette.Failed || took > 2*time.Second {
			t.Errorf("%+v after %v", out, took)
		}
	})
}
