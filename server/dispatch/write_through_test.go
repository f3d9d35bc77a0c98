package dispatch

import (
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
)

// TestWriteThroughWaitsForCacher checks that an outcome without a cacher waits until
// the object is stored. This happens if the agent has just reconnected.
func TestWriteThroughWaitsForCacher(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.start("op", scale)
		s.disconnect(a)
		s.takeLog()
		reconnected := &fakeAgent{scenario: s, name: "a/1"}
		m := &assigner.Member{Agent: assignment.Agent{ID: "a"}}
		reconnected.attached = s.Attach(m, "1", reconnected)
		reconnected.answer(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, CacheObject: &vedette.Object{Key: vedette.Key{Name: "web"}, ResourceVersion: "7"}})
		time.Sleep(time.Second)
		s.expectLog("a/1: forget op")
		s.mu.Lock()
		s.cachers["prod"], s.registered[m] = m, prodCluster
		s.mu.Unlock()
		s.notifyAssigned()
		time.Sleep(100 * time.Millisecond)
		s.expectLog("stored  web at 7", "op done 200 ")
	})
}

// TestAbsenceIsWrittenThrough checks that what a deletion found gone is removed before the caller is answered, whether it deleted anything or not.
func TestAbsenceIsWrittenThrough(t *testing.T) {
	absent := &vedette.Absence{Key: webKey, Version: "12"}
	for _, tt := range []struct {
		name string
		args vedette.Args
		out  vedette.Outcome
		want []string
	}{
		{"found nothing", vedette.DeleteArgs{Target: web, MissingOK: true}, vedette.Outcome{State: vedette.Done, Status: 200, Absent: absent},
			[]string{"absent Deployment.apps shop/web at 12 ", "op done 200 "}},
		{"found nothing, which is an error", vedette.DeleteArgs{Target: web}, vedette.Outcome{State: vedette.Failed, Status: 404, Absent: absent, Message: "not found"},
			[]string{"absent Deployment.apps shop/web at 12 ", "op failed 404 not found"}},
		{"does not wait", vedette.DeleteArgs{Target: web, NoWait: true}, vedette.Outcome{State: vedette.Done, Status: 200, Absent: absent},
			[]string{"absent Deployment.apps shop/web at 12 ", "op done 200 "}},
		{"deleted what the server did not know", vedette.DeleteArgs{Target: web},
			vedette.Outcome{State: vedette.Done, Status: 200, Absent: absent, Keys: []vedette.Key{webKey}, UIDs: []string{"u"}},
			[]string{"absent Deployment.apps shop/web at 12 u", "op done 200 "}},
		{"of another object", vedette.DeleteArgs{Target: web}, vedette.Outcome{State: vedette.Done, Status: 200, Absent: &vedette.Absence{Key: vedette.Key{Kind: deployments, Namespace: "shop", Name: "api"}, Version: "12"}},
			[]string{"op done 200 "}},
		{"by labels", vedette.DeleteArgs{Target: vedette.Target{Kind: "deployment", Namespace: "shop"}, LabelSelector: "a=b"}, vedette.Outcome{State: vedette.Done, Status: 200, Absent: absent},
			[]string{"op done 200 "}},
		{"was scaled and is gone", scale, vedette.Outcome{State: vedette.Done, Status: 200, Absent: absent, Keys: []vedette.Key{webKey}},
			[]string{"absent Deployment.apps shop/web at 12 ", "op done 200 "}},
		{"not of a change", get, vedette.Outcome{State: vedette.Done, Status: 200, Absent: absent}, []string{"op done 200 "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runScenario(t, func(s *scenario) {
				a := s.connect("a", "1")
				s.start("op", tt.args)
				s.takeLog()
				tt.out.ID = "op"
				a.answer(tt.out)
				s.expectLog(append([]string{"a/1: forget op"}, tt.want...)...)
			})
		})
	}
}

// TestWriteThroughTimesOut checks that this wait is limited.
func TestWriteThroughTimesOut(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.start("op", scale)
		s.disconnect(a)
		s.takeLog()
		a.answer(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, CacheObject: &vedette.Object{Key: vedette.Key{Name: "web"}, ResourceVersion: "7"}})
		time.Sleep(maxWriteWait)
		s.expectLog("a/1: forget op", "op done 200 ")
	})
}

// TestOperationsPrioritizeCommits checks that commits of the account give way from the
// acceptance of an operation until its object is stored, and only if an object will be
// stored.
func TestOperationsPrioritizeCommits(t *testing.T) {
	tests := []struct {
		name string
		args vedette.Args
		want bool
	}{
		{"a change", scale, true},
		{"a recache", vedette.RecacheArgs{Target: web}, true},
		{"a read-only operation", get, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			runScenario(t, func(s *scenario) {
				s.start("op", tt.args)
				s.expectPriority(tt.want, "before an agent is there")
				a := s.connect("a", "1")
				s.takeLog() // it is sent
				a.answerDone("op")
				s.expectPriority(false, "after it was answered")
			})
		})
	}
	runScenario(t, func(s *scenario) {
		cancel := s.start("op", scale)
		cancel()
		s.expectPriority(true, "after the caller left")
		a := s.connect("a", "1")
		s.takeLog()
		a.answerDone("op")
		s.expectPriority(false, "after it ended")
		s.start("op", scale)
		s.expectPriority(false, "after it was refused")
		go s.Execute(s.t.Context(), vedette.Operation{ID: "dry", Account: "prod", Args: scale, DryRun: true})
		s.expectPriority(false, "for a dry run")
		a.answerDone("dry")
	})
}

func (s *scenario) expectPriority(want bool, when string) {
	s.t.Helper()
	s.takeLog()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.prioritized > 0; got != want {
		s.t.Errorf("%s: commits give way is %t, want %t", when, got, want)
	}
}
