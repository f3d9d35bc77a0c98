package dispatch

import (
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

// TestFailureAfterResendIsLost checks that the failure of a second process does not
// hide what the first may have done.
func TestFailureAfterResendIsLost(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.start("del", vedette.DeleteArgs{Target: web})
		s.start("read", get)
		s.start("ok", scale)
		s.disconnect(a)
		s.takeLog()
		b := s.connect("b", "2")
		s.takeLog()
		b.answer(vedette.Outcome{ID: "del", State: vedette.Failed, Status: 404, Message: "deployments \"web\" not found", Warnings: []string{"and a warning"}})
		got := s.takeLog()
		for _, want := range []string{"del lost 504 it is unknown whether this took effect: it was sent to agent a at", "then to agent b, where it failed: deployments \"web\" not found", "and a warning"} {
			if !strings.Contains(got, want) {
				t.Errorf("got %s, want %q in it", got, want)
			}
		}
		b.answer(vedette.Outcome{ID: "read", State: vedette.Failed, Status: 404})
		s.expectLog("b/2: forget read", "read failed 404 ")
		b.answerDone("ok")
		s.expectLog("b/2: forget ok", "ok done 200 ")
	})
}

// TestDryRunStoresNothing checks that a dry run stores nothing, may be sent to another process, is
// never lost and is marked in the history.
func TestDryRunStoresNothing(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.startDryRun("restart", vedette.RestartArgs{Target: web})
		s.startDryRun("del", vedette.DeleteArgs{Target: web})
		s.takeLog()
		a.answer(vedette.Outcome{ID: "restart", State: vedette.Done, Status: 200, CacheObject: &vedette.Object{}})
		s.expectLog("a/1: forget restart", "restart done 200 ")
		s.disconnect(a)
		b := s.connect("b", "2")
		s.expectLog("b/2: execute del")
		b.answer(vedette.Outcome{ID: "del", State: vedette.Done, Status: 200, Keys: make([]vedette.Key, 1), UIDs: []string{"u"}})
		s.expectLog("b/2: forget del", "del done 200 ")
		s.startDryRun("late", vedette.ScaleArgs{Target: web})
		s.takeLog()
		time.Sleep(time.Minute)
		if got := s.takeLog(); !strings.Contains(got, "late failed 504 agent b did not answer") {
			t.Errorf("got the events %s", got)
		}
		s.start("real", vedette.ScaleArgs{Target: web})
		for id, dry := range map[vedette.OperationID]bool{"restart": true, "del": true, "late": true, "real": false} {
			if row := s.row(id); row.DryRun != dry {
				t.Errorf("got %+v in the history", row)
			}
		}
	})
}

// TestUnsupportedOperationNamesAgent checks that the outcome names the agent that is
// too old, and that a rejection by a cluster is passed on unchanged.
func TestUnsupportedOperationNamesAgent(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.startDryRun("dry", vedette.ScaleArgs{Target: web})
		s.takeLog()
		const message = "this agent knows no operation without arguments"
		a.answer(vedette.Outcome{ID: "dry", State: vedette.Failed, Status: 400, Reason: vedette.ReasonUnknownToAgent, Message: message})
		s.expectLog("a/1: forget dry", "dry failed 501 agent a is too old for dry runs and did nothing: upgrade it")
		if row := s.row("dry"); row.Reason != "NotImplemented" {
			t.Errorf("got %+v in the history", row)
		}
		s.start("prune", vedette.PruneArgs{All: true})
		s.takeLog()
		a.answer(vedette.Outcome{ID: "prune", State: vedette.Failed, Status: 400, Reason: vedette.ReasonUnknownToAgent})
		s.expectLog("a/1: forget prune", "prune failed 501 agent a is too old for the verb prune in this form and did nothing: upgrade it")
		s.start("refused", vedette.ScaleArgs{Target: web})
		s.takeLog()
		a.answer(vedette.Outcome{ID: "refused", State: vedette.Failed, Status: 400, Reason: "BadRequest", Message: message})
		s.expectLog("a/1: forget refused", "refused failed 400 "+message)
	})
}
