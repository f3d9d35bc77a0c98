package dispatch

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
)

// TestOperationsUnderWayAreBounded sends large operations to an account whose agent does not answer, and their
// callers leave. They are counted until they have ended, and other accounts have room.
func TestOperationsUnderWayAreBounded(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.connect("a", "1")
		large := vedette.ApplyArgs{Manifest: bytes.Repeat([]byte("x"), 8<<20)}
		accepted := func() (n int) {
			for _, line := range strings.Split(s.takeLog(), "\n") {
				if strings.Contains(line, "execute large") {
					n++
				}
			}
			return n
		}
		for i := range 20 {
			leave := s.start(vedette.OperationID(fmt.Sprint("large", i)), large)
			s.settle()
			leave()
		}
		if got := accepted(); got > 2 {
			t.Errorf("got %d operations of 8 MiB with the agent, want at most 2 at a time", got)
		}
		if used, want := s.budget.Stats().Used, int64(32<<20); used > want {
			t.Errorf("got %d bytes of one account, want at most %d", used, want)
		}
		refused := make(chan vedette.Outcome, 1)
		go func() {
			refused <- s.Execute(s.t.Context(), vedette.Operation{ID: "more", Account: "prod", Args: large})
		}()
		time.Sleep(11 * time.Second)
		if out := <-refused; out.Status != 503 || out.Reason != "Busy" {
			t.Errorf("one more: got %+v, want Busy", out)
		}
		other := make(chan vedette.Outcome, 1)
		go func() {
			other <- s.Execute(s.t.Context(), vedette.Operation{ID: "other", Account: "prdo", Args: large})
		}()
		if out := <-other; out.Reason != vedette.ReasonNoAccount {
			t.Errorf("another account: got %+v, want that it is not found", out)
		}
		time.Sleep(time.Minute) // past all deadlines
		s.settle()
		if got := s.budget.Stats(); got != (fair.Stats{}) {
			t.Errorf("got %+v after all operations have ended, want nothing", got)
		}
	})
}

// settle waits until all goroutines are blocked, and keeps the log.
func (s *scenario) settle() {
	s.logf("%s", s.takeLog())
}

// TestLateOperationsAreNotAccepted checks an operation whose deadline has passed already, because its request waited
// for the database: nothing has used up the memory of operations.
func TestLateOperationsAreNotAccepted(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.connect("a", "1")
		for _, args := range []vedette.Args{scale, get} {
			s.startOperation(vedette.Operation{ID: "1", Account: "prod", Args: args, Deadline: time.Now()})
			if got := s.takeLog(); !strings.HasPrefix(got, "1 failed 504 the deadline passed before") {
				t.Errorf("got %q", got)
			}
		}
	})
}
