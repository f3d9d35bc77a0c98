package dispatch

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/history"
)

const resumedID = vedette.OperationID("01ARZ3NDEKTSV4RRFFQ69G5FAV")

// resumeOp resumes an operation, and logs its outcome.
func (s *scenario) resumeOp(args vedette.Args) {
	go func() {
		out := s.Resume(s.t.Context(), vedette.Operation{ID: resumedID, Account: "prod", Args: args, Deadline: time.Now().Add(30 * time.Second)})
		name := "op"
		if out.ID != resumedID {
			name = "further"
		}
		s.logf("%s %s %d %v %s", name, out.State, out.Status, out.Keys, out.Message)
	}()
	synctest.Wait()
}

// begun puts an operation of another server into the history.
func (s *scenario) begun(args vedette.Args, state vedette.OutcomeState, status int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[resumedID] = history.Operation{ID: resumedID, Account: "prod", Server: "s0", Verb: args.Verb(), State: state, Status: status, Reason: reason,
		Kind: "Deployment.apps", Namespace: "shop", Name: "web"}
}

// TestResume goes on with operations of a server that has ended.
func TestResume(t *testing.T) {
	deletion := vedette.DeleteArgs{Target: web, KnownUID: "u"}
	createOnly := vedette.ApplyArgs{Manifest: []byte(`{"kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`), Strategy: vedette.StrategyCreateOnly}
	for _, tt := range []struct {
		name   string
		args   vedette.Args
		state  vedette.OutcomeState // empty if it is not in the history
		status int
		reason string
		want   []string // until the agent answers
	}{
		{"not begun", scale, "", 0, "", []string{"recorded OP scale deployment shop/web", "a/1: execute OP"}},
		{"not begun, not idempotent", restart, "", 0, "", []string{"recorded OP restart deployment shop/web", "a/1: execute OP"}},
		{"begun", scale, history.Pending, 0, "", []string{"a/1: execute OP"}},
		{"begun, a deletion", deletion, history.Pending, 0, "", []string{"a/1: execute OP, uid u, only this uid, may be missing"}},
		{"begun, not idempotent", restart, history.Pending, 0, "", []string{"op lost 504 [] " + serverGoneMessage}},
		{"begun, a creation", createOnly, history.Pending, 0, "", []string{"op lost 504 [] " + serverGoneMessage}},
		{"done", restart, vedette.Done, 200, "", []string{"op done 200 [Deployment.apps shop/web] "}},
		{"failed", scale, vedette.Failed, 403, "Forbidden", []string{"op failed 403 [] "}},
		{"nobody took it", restart, vedette.Failed, 503, "ServiceUnavailable", []string{"recorded FURTHER restart deployment shop/web", "a/1: execute FURTHER"}},
		{"lost", scale, vedette.Lost, 504, "Lost", []string{"recorded FURTHER scale deployment shop/web", "a/1: execute FURTHER"}},
		{"lost, not idempotent", restart, vedette.Lost, 504, "Lost", []string{"op lost 504 [] "}},
		{"of another verb", scale, "another", 0, "", []string{"op failed 409 [] the id 01ARZ3NDEKTSV4RRFFQ69G5FAV belongs to another operation"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runScenario(t, func(s *scenario) {
				a := s.connect("a", "1")
				switch tt.state {
				case "":
				case "another":
					s.begun(restart, history.Pending, 0, "")
				default:
					s.begun(tt.args, tt.state, tt.status, tt.reason)
				}
				s.resumeOp(tt.args)
				further := furtherID(resumedID)
				want := strings.NewReplacer("OP", string(resumedID), "FURTHER", string(further)).Replace(strings.Join(tt.want, "\n"))
				if got := s.takeLog(); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
					return
				}
				id := resumedID
				if strings.Contains(want, string(further)) {
					id = further
				}
				if !strings.Contains(want, "execute") {
					if row := s.row(resumedID); row.State == history.Pending && tt.state != "another" {
						t.Errorf("it is still pending: %+v", row)
					}
					return
				}
				if row := s.row(id); row.Server != "s1" || row.State != history.Pending {
					t.Errorf("got %+v, want an operation of this server", row)
				}
				a.answerDone(id)
				s.takeLog()
				if row := s.row(id); row.State != vedette.Done || row.Agent != "a" {
					t.Errorf("got %+v", row)
				}
				s.resumeOp(tt.args) // whoever goes on next does not execute it again
				if got := s.takeLog(); strings.Contains(got, "execute") || !strings.Contains(got, " done 200") {
					t.Errorf("a second time: got %s", got)
				}
			})
		})
	}
}

// awaitedRemote is another server that has accepted an operation and still runs.
type awaitedRemote struct {
	*fakeRemote
	ended chan error
}

func (r awaitedRemote) AwaitEnd(ctx context.Context, _ vedette.ServerID, _ vedette.OperationID) error {
	select {
	case err := <-r.ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestResumeWaitsForTheServerThatHasIt resumes an operation of a server that is stopping.
func TestResumeWaitsForTheServerThatHasIt(t *testing.T) {
	runScenario(t, func(s *scenario) {
		r := awaitedRemote{s.addRemote(), make(chan error)}
		s.SetRemote(r)
		s.connect("a", "1")
		s.begun(restart, history.Pending, 0, "")
		s.resumeOp(restart)
		time.Sleep(10 * time.Second)
		s.expectLog()
		s.begun(restart, vedette.Done, 200, "")
		r.ended <- nil
		s.expectLog("op done 200 [Deployment.apps shop/web] ")
		s.begun(scale, history.Pending, 0, "") // it ends without the outcome
		s.resumeOp(scale)
		s.expectLog()
		r.ended <- errors.New("the server has ended")
		s.expectLog("a/1: execute " + string(resumedID))
	})
}

// TestResumeWhileTheDatabaseIsDown waits until the history can be read.
func TestResumeWhileTheDatabaseIsDown(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.connect("a", "1")
		s.begun(scale, history.Pending, 0, "")
		s.setDatabaseDown(true)
		s.resumeOp(scale)
		time.Sleep(5 * time.Second)
		s.expectLog()
		s.setDatabaseDown(false)
		time.Sleep(time.Second)
		s.expectLog("a/1: execute " + string(resumedID))
	})
	runScenario(t, func(s *scenario) {
		s.begun(scale, history.Pending, 0, "")
		s.setDatabaseDown(true)
		s.resumeOp(scale)
		time.Sleep(time.Minute)
		if got := s.takeLog(); !strings.HasPrefix(got, "op lost 504") || !strings.Contains(got, "Look at the object") {
			t.Errorf("got %s", got)
		}
	})
}

// TestOutcomeBeforeResume lets an agent that has lost its server send an outcome here. It must not forget it: the operation is about to be
// sent to it again.
func TestOutcomeBeforeResume(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.addRemote()
		a := s.connect("a", "1")
		s.begun(scale, history.Pending, 0, "")
		a.answerDone(resumedID)
		s.expectLog()
		end := s.accept(resumedID)
		s.mu.Lock()
		row := s.rows[resumedID]
		row.Server = "s1"
		s.rows[resumedID] = row
		s.mu.Unlock()
		a.answerDone(resumedID)
		s.expectLog()
		end()
		a.answerDone(resumedID)
		s.expectLog("a/1: forget " + string(resumedID))
	})
}

// TestServerWithoutLeaseSendsNoChange lets a server stand still after it has recorded a change. It sends the change when it knows that it
// still has its lease.
func TestServerWithoutLeaseSendsNoChange(t *testing.T) {
	runScenario(t, func(s *scenario) {
		var lost atomic.Bool
		s.SetLease(func(context.Context) error {
			if lost.Load() {
				return errors.New("it is not certain, or another server has evicted this one")
			}
			return nil
		})
		lost.Store(true)
		s.connect("a", "1")
		s.start("op", scale)
		s.expectLog("recorded op scale deployment shop/web")
		s.start("get", get)
		s.expectLog("a/1: execute get")
		time.Sleep(5 * time.Second)
		s.expectLog()
		lost.Store(false)
		time.Sleep(time.Second)
		s.expectLog("a/1: execute op")
		lost.Store(true)
		s.start("late", restart)
		time.Sleep(time.Minute)
		if got := s.takeLog(); strings.Contains(got, "execute late") || !strings.Contains(got, "late failed 503") {
			t.Errorf("got %s", got)
		}
	})
}
