package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store/history"
)

func TestOutcomeIsStoredAndAnswered(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.start("op", scale)
		s.expectLog("recorded op scale deployment shop/web", "a/1: execute op")
		a.answer(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, CacheObject: &vedette.Object{Key: vedette.Key{Name: "web"}, ResourceVersion: "7"}})
		s.expectLog("a/1: forget op", "stored  web at 7", "op done 200 ")
		if row := s.row("op"); row.State != vedette.Done || row.Agent != "a" || row.Sent.IsZero() || row.Ended.IsZero() {
			t.Errorf("got %+v in the history", row)
		}
		fresh := &vedette.Object{Key: vedette.Key{Name: "web"}, ResourceVersion: "8"}
		s.start("get", get)
		s.takeLog()
		a.answer(vedette.Outcome{ID: "get", State: vedette.Done, Status: 200, CacheObject: fresh})
		s.expectLog("a/1: forget get", "get done 200 ")
		s.start("recache", vedette.RecacheArgs{Target: web})
		s.takeLog()
		a.answer(vedette.Outcome{ID: "recache", State: vedette.Done, Status: 200, CacheObject: fresh})
		s.expectLog("a/1: forget recache", "stored  web at 8", "recache done 200 ")
		s.start("del", vedette.DeleteArgs{Target: web})
		s.takeLog()
		a.answer(vedette.Outcome{ID: "del", State: vedette.Done, Status: 200, Keys: []vedette.Key{{Name: "web"}}, UIDs: []string{"u"}})
		s.expectLog("a/1: forget del", "removed  web u", "del done 200 ")
	})
}

// TestDuplicateIDIsRejected checks that an operation in the history is not sent again.
func TestDuplicateIDIsRejected(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.start("op", restart)
		a.answerDone("op")
		s.takeLog()
		s.start("op", restart)
		s.expectLog("op failed 409 the operation op was accepted before")
	})
}

func TestNoAgentForAccount(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.start("op", scale)
		s.expectLog("recorded op scale deployment shop/web")
		time.Sleep(11 * time.Second)
		if got := s.takeLog(); !strings.HasPrefix(got, "op failed 503 no agent serves account prod: none has connected within 10s, and nothing was done") {
			t.Error(got)
		}
		out := s.Execute(s.t.Context(), vedette.Operation{Account: "prdo", Args: get})
		if out.Status != 503 || !strings.Contains(out.Message, "no account prdo") {
			t.Errorf("unknown account: got %+v", out)
		}
		s.start("later", get)
		time.Sleep(5 * time.Second)
		a := s.connect("a", "1")
		s.expectLog("a/1: execute later")
		a.answerDone("later")
		s.expectLog("a/1: forget later", "later done 200 ")
	})
}

// TestResendAfterDisconnect loses a connection during an operation.
func TestResendAfterDisconnect(t *testing.T) {
	tests := []struct {
		name    string
		args    vedette.Args
		agent   vedette.AgentID
		process string // the process that comes next
		want    string // the event after it
	}{
		{"the same process knows what it did", restart, "a", "1", "a/1: execute op"},
		{"an idempotent operation", scale, "a", "2", "a/2: execute op"},
		{"another process may find nothing to delete", vedette.DeleteArgs{Target: web}, "a", "2", "a/2: execute op, may be missing"},
		{"the same process knows what it deleted", vedette.DeleteArgs{Target: web}, "a", "1", "a/1: execute op"},
		{"a read-only operation", get, "b", "9", "b/9: execute op"},
		{"a restart would roll out twice", restart, "a", "2", "op lost 504 it is unknown whether this took effect"},
		{"a standby cannot know either", restart, "b", "9", "op lost 504 it is unknown whether this took effect"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			runScenario(t, func(s *scenario) {
				a := s.connect("a", "1")
				s.start("op", tt.args)
				s.disconnect(a)
				s.takeLog()
				time.Sleep(3 * time.Second)
				next := s.connect(tt.agent, tt.process)
				if got := s.takeLog(); !strings.HasPrefix(got, tt.want) {
					t.Errorf("got %s\nwant %s", got, tt.want)
				}
				next.answerDone("op")
			})
		})
	}
}

// TestOutcomeAfterReconnect checks that an outcome on the new connection is accepted
// before the operation is sent again.
func TestOutcomeAfterReconnect(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.start("op", restart)
		s.disconnect(a)
		s.takeLog()
		b := &fakeAgent{scenario: s, name: "a/1"}
		b.attached = s.Attach(&assigner.Member{Agent: assignment.Agent{ID: "a"}}, "1", b) // not registered yet: it holds no account
		b.answerDone("op")
		s.expectLog("a/1: forget op", "op done 200 ")
	})
}

func TestMissedDeadlineIsLostOrFailed(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.start("w", scale)
		s.start("r", get)
		s.takeLog()
		time.Sleep(32 * time.Second)
		if got := s.takeLog(); got != "" {
			t.Errorf("before the end of the grace: got %s", got)
		}
		time.Sleep(2 * time.Second)
		got := strings.Split(s.takeLog(), "\n")
		slices.Sort(got)
		for i, want := range []string{"a/1: cancel r", "a/1: cancel w", "r failed 504 agent a did not answer by the deadline",
			"w lost 504 it is unknown whether this took effect"} {
			if i >= len(got) || !strings.HasPrefix(got[i], want) {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		a.answerDone("w")
		s.expectLog("a/1: forget w")
	})
}

func TestOperationContinuesWithoutItsCaller(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		cancel := s.start("op", scale)
		s.takeLog()
		cancel()
		// The agent ends a wait for deletions, but not the operation.
		if got := s.takeLog(); !strings.HasPrefix(got, "a/1: cancel op\nop lost 504 the caller left before the operation ended; the operation continues") {
			t.Error(got)
		}
		a.answerDone("op")
		if row := s.row("op"); row.State != vedette.Done {
			t.Errorf("got %+v in the history", row)
		}
	})
}

func TestStoppingServerLosesItsOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scenario{t: t, cachers: map[vedette.AccountName]*assigner.Member{}, rows: map[vedette.OperationID]history.Operation{},
			registered: map[*assigner.Member]vedette.Cluster{}}
		s.Dispatcher = New(Config{Server: "s1"}, s, s, s, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		s.connect("a", "1")
		s.start("op", scale)
		s.takeLog()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := s.takeLog(); !strings.Contains(got, "op lost 504") || !strings.Contains(got, "the server is stopping") {
			t.Error(got)
		}
		if row := s.row("op"); row.State != vedette.Lost {
			t.Errorf("got %+v in the history", row)
		}
	})
}

// After a pause of the server several timers may have fired. An operation that was sent may have taken effect, so it is
// lost whichever is noticed first.
func TestServerStandsStill(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		const operations = 20
		for i := range operations {
			s.start(vedette.OperationID(fmt.Sprint("op", i)), scale)
		}
		s.takeLog()
		s.pause = time.Hour
		s.disconnect(a)
		time.Sleep(2 * time.Hour)
		if got := s.takeLog(); strings.Count(got, "lost 504") != operations {
			t.Errorf("want %d lost operations, got\n%s", operations, got)
		}
	})
}

func TestUnrecordedOperationDoesNothing(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.connect("a", "1")
		s.setDatabaseDown(true)
		s.start("op", scale)
		got := s.takeLog()
		if !strings.HasPrefix(got, "op failed 503 the server could not record the operation") || !strings.Contains(got, "so nothing was done: the database is away. Try again") {
			t.Error(got)
		}
		s.start("r", get) // reading needs no note
		s.expectLog("a/1: execute r")
	})
}

// echoAgent answers every operation with the operation's own target, after a random
// delay.
type echoAgent struct {
	name     string
	attached *AttachedAgent
}

func (c *echoAgent) Cancel(vedette.OperationID) {}
func (c *echoAgent) Forget(vedette.OperationID) {}
func (c *echoAgent) Send(op vedette.Operation) error {
	target := op.Args.(vedette.ScaleArgs).Target
	time.AfterFunc(rand.N(time.Second), func() {
		c.attached.HandleOutcome(vedette.Outcome{ID: op.ID, State: vedette.Done, Message: c.name + " " + string(op.Account) + " " + target.Name})
	})
	return nil
}

// TestOutcomesReachTheirCallers sends 1,000 operations at once over 20 agents.
func TestOutcomesReachTheirCallers(t *testing.T) {
	runScenario(t, func(s *scenario) {
		for i := range 20 {
			name := fmt.Sprint("agent-", i)
			m := &assigner.Member{Agent: assignment.Agent{ID: vedette.AgentID(name)}}
			c := &echoAgent{name: name}
			c.attached = s.Attach(m, "1", c)
			s.cachers[vedette.AccountName(fmt.Sprint("account-", i))], s.registered[m] = m, prodCluster
		}
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				account, object := fmt.Sprint("account-", i%20), fmt.Sprint("object-", i)
				out := s.Execute(s.t.Context(), vedette.Operation{Account: vedette.AccountName(account), Args: vedette.ScaleArgs{Target: vedette.Target{Kind: "deployment", Name: object}}})
				if want := fmt.Sprintf("agent-%d %s %s", i%20, account, object); out.Message != want {
					t.Errorf("got %q, want %q", out.Message, want)
				}
			})
		}
		all.Wait()
	})
}

// TestExpiryOfStoppedServersOperations checks that operations of a server that does not
// come back end. They do not end right after their deadline, because the server may
// still be recording the outcome.
func TestExpiryOfStoppedServersOperations(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.mu.Lock()
		s.rows["theirs"] = history.Operation{ID: "theirs", Server: "s2", State: history.Pending, Deadline: time.Now().Add(30 * time.Second)}
		s.mu.Unlock()
		time.Sleep(3 * time.Minute)
		if row := s.row("theirs"); row.State != history.Pending {
			t.Errorf("the operation ended too early: %+v", row)
		}
		time.Sleep(5 * time.Minute)
		if row := s.row("theirs"); row.State != vedette.Lost || !strings.Contains(row.Message, "the server that accepted it stopped") {
			t.Errorf("got %+v in the history", row)
		}
	})
}
