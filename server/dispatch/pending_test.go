package dispatch

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
)

// connectOther connects an agent that serves another account.
func (s *scenario) connectOther(id vedette.AgentID, process string) *fakeAgent {
	m := &assigner.Member{Agent: assignment.Agent{ID: id}}
	a := &fakeAgent{scenario: s, name: string(id) + "/" + process}
	a.attached = s.Attach(m, process, a)
	return a
}

// TestOutcomesOfOtherAgentsAreRefused checks that an outcome from an agent that was not
// sent the operation is ignored.
func TestOutcomesOfOtherAgentsAreRefused(t *testing.T) {
	runScenario(t, func(s *scenario) {
		others := []*fakeAgent{s.connectOther("lab", "1"), s.connectOther("a", "2"), s.connectOther("a", ""), s.connectOther("b", "1")}
		a := s.connect("a", "1")
		s.start("op", scale)
		s.start("log", vedette.LogsArgs{Target: web})
		s.takeLog()
		forged := vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, CacheObject: &vedette.Object{Key: vedette.Key{Name: "forged"}, ResourceVersion: "9"}}
		for _, other := range others {
			other.answer(forged)
			s.expectLog(other.name + ": forget op")
			if _, ok := other.attached.Claim("log", true); ok {
				t.Errorf("%s can claim the log", other.name)
			}
			if other.attached.HandleOutcome(vedette.Outcome{ID: "log", State: vedette.Done, Stream: io.NopCloser(strings.NewReader("forged"))}) {
				t.Errorf("the log of %s is accepted", other.name)
			}
			s.expectLog("") // and the operation does not end
		}
		if got, want := s.ForgedOutcomes(), int64(3*len(others)); got != want {
			t.Errorf("forged outcomes: got %d, want %d", got, want)
		}
		a.answer(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, CacheObject: &vedette.Object{Key: vedette.Key{Name: "web"}, ResourceVersion: "7"}})
		s.expectLog("a/1: forget op", "stored  web at 7", "op done 200 ")
	})
}

// TestOutcomeOnAnotherConnection checks that a process can answer on its next
// connection, even without its account, and that an earlier process can still answer
// after the operation was sent to another.
func TestOutcomeOnAnotherConnection(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.start("op", scale)
		s.start("two", scale)
		s.disconnect(a)
		s.takeLog()
		reconnected := s.connectOther("a", "1")
		reconnected.answerDone("op")
		s.expectLog("a/1: forget op", "op done 200 ")
		s.connect("b", "2")
		s.expectLog("b/2: execute two")
		reconnected.answerDone("two")
		s.expectLog("a/1: forget two", "two done 200 ")
	})
}

// TestOutcomeIsClaimedOnce checks that an outcome is received only once at a time, and that only logs
// answers have a log.
func TestOutcomeIsClaimedOnce(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.start("op", scale)
		s.takeLog()
		release, ok := a.attached.Claim("op", false)
		if _, claimedTwice := a.attached.Claim("op", false); !ok || claimedTwice {
			t.Errorf("got %v, and %v for the second claim", ok, claimedTwice)
		}
		s.expectLog("") // an outcome that is on its way is not to be forgotten
		release()
		if _, log := a.attached.Claim("op", true); log {
			t.Error("a log can be claimed for an operation without logs")
		}
		if _, ok := a.attached.Claim("other", false); ok {
			t.Error("an unknown operation can be claimed")
		}
		s.expectLog("a/1: forget other")
		release, ok = a.attached.Claim("op", false)
		if !ok {
			t.Error("a released claim can't be claimed again")
		}
		a.answerDone("op")
		release()
		s.takeLog()
	})
}

// TestInvalidNamesAreRejected checks that an operation with a name that neither the
// protocol nor the history can represent is not sent.
func TestInvalidNamesAreRejected(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.connect("a", "1")
		bad := vedette.Target{Kind: "pod", Namespace: "default", Name: "\xff"}
		for _, op := range []vedette.Operation{
			{ID: "1", Account: "prod", Args: vedette.LogsArgs{Target: bad}},
			{ID: "2", Account: "prod", Args: vedette.DeleteArgs{Target: bad}},
			{ID: "3", Account: "prod", Args: vedette.ScaleArgs{Target: vedette.Target{Kind: "pod", Name: "a\x00b"}}},
			{ID: "4", Account: "prod", Args: vedette.PruneArgs{Keep: []string{"uid", "\xff"}}},
			{ID: "5", Account: "pr\xff", Args: vedette.GetArgs{Target: web}},
		} {
			out := s.Execute(t.Context(), op)
			if out.State != vedette.Failed || out.Status != 400 || out.ID != op.ID {
				t.Errorf("operation %s: got %s %d %s, want failed 400", op.ID, out.State, out.Status, out.Message)
			}
		}
		s.expectLog("")
		s.start("log", vedette.LogsArgs{Target: web, SinceTime: time.Now()})
		s.expectLog("a/1: execute log")
	})
}

// TestOperationThatCannotBeEncodedFails checks that an operation fails at once if the
// protocol cannot express it, and that the agent receives nothing.
func TestOperationThatCannotBeEncodedFails(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		a.sendErr = vedette.Errorf(vedette.Invalid, "no such field")
		s.start("1", get)
		s.expectLog("1 failed 400 no such field")
	})
}
