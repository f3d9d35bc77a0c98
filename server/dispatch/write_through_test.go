package dispatch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store/commit"
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

// TestEffectOfAnAccountThatHasMoved checks that the outcome of an operation waits until the server that writes the account now has stored
// what the operation has changed.
func TestEffectOfAnAccountThatHasMoved(t *testing.T) {
	object := &vedette.Object{Key: webKey, ResourceVersion: "12"}
	gone := &vedette.Absence{Key: webKey, Version: "12"}
	for _, tt := range []struct {
		name  string
		args  vedette.Args
		out   vedette.Outcome
		asked string // "" if nothing is waited for
	}{
		{"written", scale, vedette.Outcome{State: vedette.Done, Status: 200, CacheObject: object}, "Deployment.apps shop/web at 12 of prod"},
		{"written, and not in the form of a feed", scale, vedette.Outcome{State: vedette.Done, Status: 200, Awaited: &vedette.ObjectVersion{Key: webKey, Version: "12"}},
			"Deployment.apps shop/web at 12 of prod"},
		{"deleted", vedette.DeleteArgs{Target: web}, vedette.Outcome{State: vedette.Done, Status: 200, Keys: []vedette.Key{webKey}, UIDs: []string{"u"}},
			"no Deployment.apps shop/web at  of prod: u, was stored: false"},
		{"not found", vedette.DeleteArgs{Target: web}, vedette.Outcome{State: vedette.Failed, Status: 404, Absent: gone},
			"no Deployment.apps shop/web at 12 of prod: , was stored: false"},
		{"reported by no feed", scale, vedette.Outcome{State: vedette.Done, Status: 200}, ""},
		{"read", get, vedette.Outcome{State: vedette.Done, Status: 200, CacheObject: object}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runScenario(t, func(s *scenario) {
				a := s.connect("a", "1")
				s.start("op", tt.args)
				s.takeLog()
				s.disconnect(a)
				s.takeLog()
				tt.out.ID = "op"
				a.answer(tt.out)
				time.Sleep(maxWriteThroughWait / 2)
				if got := s.takeLog(); (got == "a/1: forget op") != (tt.asked != "") {
					t.Errorf("before the other server has stored it: got the events\n%s", got)
				}
				s.mu.Lock()
				s.elsewhere = true
				asked := s.asked
				s.mu.Unlock()
				time.Sleep(maxStoredPoll)
				if got := s.takeLog(); strings.Contains(got, "op "+string(tt.out.State)) != (tt.asked != "") || asked != tt.asked {
					t.Errorf("after the other server has stored it: got %q and the events\n%s\nwant %q", asked, got, tt.asked)
				}
			})
		})
	}
	t.Run("no feed reports the object", func(t *testing.T) {
		runScenario(t, func(s *scenario) {
			a := s.connect("a", "1")
			s.start("op", scale)
			s.disconnect(a)
			s.takeLog()
			s.elsewhereErr = commit.ErrNoFeed
			a.answer(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, Awaited: &vedette.ObjectVersion{Key: webKey, Version: "12"}})
			s.expectLog("a/1: forget op", "op done 200 ")
		})
	})
}

// TestEffectIsWaitedFor checks how long an outcome waits for what another server has not stored.
func TestEffectIsWaitedFor(t *testing.T) {
	for _, tt := range []struct {
		name    string
		holder  vedette.AgentID
		timeout time.Duration // of the operation
		stops   bool          // whether the server stops meanwhile
		want    time.Duration
	}{
		{"nobody has the account", "", time.Minute, false, maxWriteThroughWait},
		{"another agent has the account", "b", time.Minute, false, maxFeedWait},
		{"the deadline is sooner", "b", 4 * time.Second, false, 4 * time.Second},
		{"the deadline is very soon", "b", time.Second, false, maxWriteThroughWait},
		{"the server stops", "b", time.Minute, true, maxWriteThroughWait},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runScenario(t, func(s *scenario) {
				a := s.connect("a", "1")
				began := time.Now()
				s.startOperation(vedette.Operation{ID: "op", Account: "prod", Args: scale, Deadline: began.Add(tt.timeout)})
				s.disconnect(a)
				s.takeLog()
				s.mu.Lock()
				s.holder = tt.holder
				s.mu.Unlock()
				a.answer(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, CacheObject: &vedette.Object{Key: webKey, ResourceVersion: "12"}})
				if tt.stops {
					s.cancelChanges()
				}
				s.takeLog()
				for s.takeLog() == "" && time.Since(began) < time.Minute {
					time.Sleep(minStoredPoll)
				}
				if got := time.Since(began); got < tt.want || got > tt.want+2*maxStoredPoll {
					t.Errorf("the outcome came after %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// TestEffectInAnotherForm checks that the outcome of an operation waits for the feed of this server if that reports another version of
// the kind.
func TestEffectInAnotherForm(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.start("op", scale)
		s.takeLog()
		a.answer(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, Awaited: &vedette.ObjectVersion{Key: webKey, Version: "12"}})
		time.Sleep(maxStoredPoll)
		s.expectLog("a/1: forget op")
		s.mu.Lock()
		s.elsewhere = true
		s.mu.Unlock()
		time.Sleep(maxStoredPoll)
		s.expectLog("op done 200 ")
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

// TestManyDeletionsAreWrittenInTime checks that the outcome of a deletion of many objects does not wait for a database that takes its time for each.
func TestManyDeletionsAreWrittenInTime(t *testing.T) {
	out := vedette.Outcome{ID: "op", State: vedette.Done, Status: 200}
	for n := range 100 {
		out.Keys = append(out.Keys, vedette.Key{Kind: deployments, Namespace: "shop", Name: fmt.Sprint("web-", n)})
		out.UIDs = append(out.UIDs, fmt.Sprint("u", n))
	}
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.start("op", vedette.DeleteArgs{Target: vedette.Target{Kind: "deployment", Namespace: "shop"}, LabelSelector: "a=b"})
		s.takeLog()
		s.mu.Lock()
		s.pause = time.Second // for each object
		s.mu.Unlock()
		a.answer(out)
		time.Sleep(maxFeedWait + 2*time.Second)
		if got := s.takeLog(); !strings.Contains(got, "removed Deployment.apps shop/web-8 u8\n") || !strings.HasSuffix(got, "op done 200 ") {
			t.Errorf("got the events\n%s\nwant the first objects removed, and the outcome", got)
		}
	})
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
