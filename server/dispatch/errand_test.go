package dispatch

import (
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

// What a second process says of an operation that the first one had tells nothing
// of what the first one did.
func TestFailureOfTheSecondProcess(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		s.do("del", vedette.DeleteArgs{Target: web})
		s.do("read", read)
		s.do("ok", scale)
		s.cut(a)
		s.heard()
		b := s.connect("b", "2")
		s.heard()
		b.answers(vedette.Outcome{ID: "del", State: vedette.Failed, Status: 404, Message: "deployments \"web\" not found", Warnings: []string{"and a warning"}})
		got := s.heard()
		for _, want := range []string{"del lost 504 it is unknown whether this took effect: it was sent to agent a at", "then to agent b, where it failed: deployments \"web\" not found", "and a warning"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in %s", want, got)
			}
		}
		b.answers(vedette.Outcome{ID: "read", State: vedette.Failed, Status: 404})
		s.want("b/2 may forget read", "read failed 404 ")
		b.done("ok")
		s.want("b/2 may forget ok", "ok done 200 ")
	})
}

// TestDryRuns holds what becomes of dry runs: nothing of them is stored, another
// process may be sent them, nothing of them is ever unknown, and the history has
// them as what they are.
func TestDryRuns(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		s.doDry("restart", vedette.RestartArgs{Target: web})
		s.doDry("del", vedette.DeleteArgs{Target: web})
		s.heard()
		a.answers(vedette.Outcome{ID: "restart", State: vedette.Done, Status: 200, CacheObject: &vedette.Object{}})
		s.want("a/1 may forget restart", "restart done 200 ")
		s.cut(a)
		b := s.connect("b", "2")
		s.want("b/2 is sent del")
		b.answers(vedette.Outcome{ID: "del", State: vedette.Done, Status: 200, Keys: make([]vedette.Key, 1), UIDs: []string{"u"}})
		s.want("b/2 may forget del", "del done 200 ")
		s.doDry("late", vedette.ScaleArgs{Target: web})
		s.heard()
		time.Sleep(time.Minute)
		if got := s.heard(); !strings.Contains(got, "late failed 504 agent b did not answer") {
			t.Errorf("%s", got)
		}
		s.do("real", vedette.ScaleArgs{Target: web})
		for id, dry := range map[vedette.OperationID]bool{"restart": true, "del": true, "late": true, "real": false} {
			if row := s.row(id); row.DryRun != dry {
				t.Errorf("the history has %+v", row)
			}
		}
	})
}

// TestAnOlderAgentIsNamed holds that a refusal for want of a word says what is too
// old, and that the no of a cluster is left as it is, whatever it says.
func TestAnOlderAgentIsNamed(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		s.doDry("dry", vedette.ScaleArgs{Target: web})
		s.heard()
		const words = "this agent knows no operation without arguments"
		a.answers(vedette.Outcome{ID: "dry", State: vedette.Failed, Status: 400, Reason: vedette.ReasonUnknownToAgent, Message: words})
		s.want("a/1 may forget dry", "dry failed 501 agent a is too old to know dry runs, and did nothing: upgrade it")
		if row := s.row("dry"); row.Reason != "NotImplemented" {
			t.Errorf("the history has %+v", row)
		}
		s.do("prune", vedette.PruneArgs{All: true})
		s.heard()
		a.answers(vedette.Outcome{ID: "prune", State: vedette.Failed, Status: 400, Reason: vedette.ReasonUnknownToAgent})
		s.want("a/1 may forget prune", "prune failed 501 agent a is too old to know the verb prune in this form, and did nothing: upgrade it")
		s.do("refused", vedette.ScaleArgs{Target: web})
		s.heard()
		a.answers(vedette.Outcome{ID: "refused", State: vedette.Failed, Status: 400, Reason: "BadRequest", Message: words})
		s.want("a/1 may forget refused", "refused failed 400 "+words)
	})
}
