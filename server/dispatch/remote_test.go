package dispatch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/dispatch/lifecycle"
	"github.com/vedette-io/vedette/server/store/history"
)

// fakeRemote offers the agents that a test makes.
type fakeRemote struct {
	scenario *scenario
	found    chan RemoteAgent
	missed   chan struct{}
	attempts []int
}

func (r *fakeRemote) Find(_ context.Context, w Wanted) Search {
	r.attempts = append(r.attempts, w.Attempts)
	return r
}
func (r *fakeRemote) Found() <-chan RemoteAgent { return r.found }
func (r *fakeRemote) Missed() <-chan struct{}   { return r.missed }
func (r *fakeRemote) Obstacle() string          { return "server s2 is away" }
func (r *fakeRemote) AwaitEnd(context.Context, vedette.ServerID, vedette.OperationID) error {
	return errors.New("asked")
}

// fakeRemoteAgent is an agent at another server.
type fakeRemoteAgent struct {
	scenario *scenario
	name     string
	process  string
	cluster  vedette.Cluster
	out      chan RemoteEvent
}

func (a *fakeRemoteAgent) Agent() lifecycle.Agent {
	return lifecycle.Agent{ID: "a", Version: "1.0", Process: a.process}
}
func (a *fakeRemoteAgent) Server() vedette.ServerID { return vedette.ServerID(a.name) }
func (a *fakeRemoteAgent) Cluster() vedette.Cluster { return a.cluster }
func (a *fakeRemoteAgent) Send(op vedette.Operation) error {
	a.scenario.logf("%s: relay %s", a.name, op.ID)
	return nil
}
func (a *fakeRemoteAgent) Cancel()                    { a.scenario.logf("%s: cancel", a.name) }
func (a *fakeRemoteAgent) Events() <-chan RemoteEvent { return a.out }
func (a *fakeRemoteAgent) Close()                     { a.scenario.logf("%s: close", a.name) }

func (s *scenario) addRemote() *fakeRemote {
	r := &fakeRemote{scenario: s, found: make(chan RemoteAgent), missed: make(chan struct{})}
	s.SetRemote(r)
	return r
}

func (r *fakeRemote) offer(name, process string) *fakeRemoteAgent {
	a := &fakeRemoteAgent{r.scenario, name, process, prodCluster, make(chan RemoteEvent, 1)}
	r.found <- a
	return a
}

// TestRemoteAgentAnswers passes an operation to an agent at another server, which writes it through.
func TestRemoteAgentAnswers(t *testing.T) {
	runScenario(t, func(s *scenario) {
		r := s.addRemote()
		s.start("op", scale)
		a := r.offer("s2", "1")
		s.expectLog("recorded op scale deployment shop/web", "s2: relay op")
		if !s.IsBusy("prod") {
			t.Error("the account is not busy")
		}
		a.out <- RemoteEvent{Outcome: vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, CacheObject: &vedette.Object{ResourceVersion: "7"}}}
		s.expectLog("s2: close", "op done 200 ")
		if row := s.row("op"); row.State != vedette.Done || row.Agent != "a" {
			t.Errorf("got %+v", row)
		}
		s.connect("local", "1")
		s.start("here", scale)
		s.expectLog("recorded here scale deployment shop/web", "local/1: execute here")
	})
}

// TestReturnedOperationIsNotLost ends an operation that was never sent without a doubt, and sends it to another process.
func TestReturnedOperationIsNotLost(t *testing.T) {
	runScenario(t, func(s *scenario) {
		r := s.addRemote()
		s.start("op", restart)
		r.offer("s2", "1").out <- RemoteEvent{Returned: true}
		s.expectLog("recorded op restart deployment shop/web", "s2: relay op", "s2: close")
		second := r.offer("s3", "2")
		s.expectLog("s3: relay op")
		second.out <- RemoteEvent{Returned: true}
		s.expectLog("s3: close")
		time.Sleep(time.Minute)
		if got := s.takeLog(); !strings.HasPrefix(got, "op failed 503") || !strings.Contains(got, "server s2 is away") {
			t.Error(got)
		}
		if got := r.attempts; len(got) != 3 || got[2] != 2 {
			t.Errorf("got attempts %v", got)
		}
	})
}

// TestRemoteAgentIsGone closes the connection to the other server. The operation is sent to the same process only, here or elsewhere.
func TestRemoteAgentIsGone(t *testing.T) {
	for _, tt := range []struct{ name, process, want string }{
		{"the same process", "1", "a/1: execute op"},
		{"another process", "2", "op lost 504"},
	} {
		runScenario(t, func(s *scenario) {
			r := s.addRemote()
			s.start("op", restart)
			close(r.offer("s2", "1").out)
			s.expectLog("recorded op restart deployment shop/web", "s2: relay op", "s2: close")
			a := s.connect("a", tt.process)
			if got := s.takeLog(); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
			}
			a.answerDone("op")
		})
	}
}

// TestRemoteProcessAnswersHere lets the process that has an operation answer on a connection to this server, while the connection to
// the other server still seems to live.
func TestRemoteProcessAnswersHere(t *testing.T) {
	runScenario(t, func(s *scenario) {
		r := s.addRemote()
		s.start("op", restart)
		r.offer("s2", "1")
		s.takeLog()
		other := s.connectOther("b", "1")
		other.answerDone("op")
		s.expectLog("b/1: forget op")
		a := s.connect("a", "1")
		a.answerDone("op")
		s.expectLog("a/1: forget op", "s2: close", "op done 200 ")
	})
}

// TestRemoteAgentOfAnotherCluster offers an agent that has registered another cluster.
func TestRemoteAgentOfAnotherCluster(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.stored = vedette.Cluster{UID: "blue"}
		r := s.addRemote()
		s.start("op", scale)
		close(r.missed)
		s.takeLog()
		r.found <- &fakeRemoteAgent{s, "s2", "1", vedette.Cluster{UID: "green"}, make(chan RemoteEvent)}
		if got := s.takeLog(); !strings.HasPrefix(got, "s2: close\nop failed 409") {
			t.Error(got)
		}
	})
}

// TestCallerOfRemoteOperationLeaves cancels the operation at the other server.
func TestCallerOfRemoteOperationLeaves(t *testing.T) {
	runScenario(t, func(s *scenario) {
		r := s.addRemote()
		leave := s.start("op", scale)
		a := r.offer("s2", "1")
		s.takeLog()
		leave()
		if got := s.takeLog(); !strings.HasPrefix(got, "s2: cancel\nop lost 504") {
			t.Error(got)
		}
		a.out <- RemoteEvent{Outcome: vedette.Outcome{ID: "op", State: vedette.Done}}
		s.expectLog("s2: close")
		leave = s.start("read", get)
		r.offer("s2", "1")
		s.takeLog()
		leave()
		if got := s.takeLog(); !strings.HasPrefix(got, "s2: cancel\ns2: close\nread failed") {
			t.Error(got)
		}
	})
}

// TestOutcomesOfOtherServersAreKept lets agents keep outcomes that other servers may need, and forget all others.
func TestOutcomesOfOtherServersAreKept(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.addRemote()
		a := s.connect("a", "1")
		for id, row := range map[vedette.OperationID]history.Operation{
			"running elsewhere": {Server: "s2", State: history.Pending}, "ended elsewhere": {Server: "s2", State: vedette.Lost},
			"refused here": {Server: "s1", State: history.Pending},
		} {
			row.ID = id
			s.rows[id] = row
		}
		for _, tt := range []struct {
			id      vedette.OperationID
			forgets bool
		}{{"running elsewhere", false}, {"ended elsewhere", true}, {"refused here", true}, {"a read", true}} {
			want := ""
			if tt.forgets {
				want = "a/1: forget " + string(tt.id)
			}
			a.answerDone(tt.id)
			s.expectLog(want)
			if _, ok := a.attached.Claim(tt.id, false); ok {
				t.Errorf("%s can be claimed", tt.id)
			}
			s.expectLog(want)
		}
		s.setDatabaseDown(true)
		a.answerDone("ended elsewhere")
		s.expectLog("")
	})
}

func (s *scenario) relay(id vedette.OperationID, args vedette.Args) *Relay {
	s.t.Helper()
	r, err := s.Relay(s.t.Context(), RelayRequest{From: "s2", Operation: id, Account: "prod"})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := r.Send(vedette.Operation{ID: id, Account: "prod", Args: args, Deadline: time.Now().Add(time.Minute)}); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// TestRelayKeepsTheAccountBusy relays an operation whose server loses its connection. The account is busy until the agent has answered,
// and the agent keeps the outcome for the next connection.
func TestRelayKeepsTheAccountBusy(t *testing.T) {
	runScenario(t, func(s *scenario) {
		if _, err := s.Relay(s.t.Context(), RelayRequest{From: "s2", Operation: "op", Account: "prod"}); !IsNotHere(err) {
			t.Errorf("got %v", err)
		}
		a := s.connect("a", "1")
		done := vedette.Outcome{ID: "op", State: vedette.Done, CacheObject: &vedette.Object{ResourceVersion: "7"}}
		first := s.relay("op", restart)
		s.expectLog("a/1: execute op")
		first.Close()
		if s.expectLog(""); !s.IsBusy("prod") {
			t.Error("the account is not busy")
		}
		second := s.relay("op", restart)
		s.takeLog()
		a.answer(done)
		s.expectLog("stored   at 7")
		if e, ok := <-second.Events(); !ok || e.Outcome.State != vedette.Done {
			t.Errorf("got %+v, %v", e, ok)
		}
		second.Acknowledge()
		s.expectLog("a/1: forget op")
		second.Close()
		third := s.relay("later", restart)
		third.Close()
		s.takeLog()
		a.answerDone("later")
		if s.expectLog(""); s.IsBusy("prod") || s.budget.Stats().Used != 0 {
			t.Errorf("the account is busy, or %d bytes are held", s.budget.Stats().Used)
		}
		read := s.relay("read", get)
		read.Close()
		s.expectLog("a/1: execute read", "a/1: cancel read")
		if s.IsBusy("prod") {
			t.Error("a read that nobody waits for makes the account busy")
		}
		silent := s.relay("silent", restart)
		time.Sleep(2 * time.Minute)
		if _, ok := <-silent.Events(); ok || s.IsBusy("prod") {
			t.Error("an operation outlives its deadline")
		}
		silent.Close()
		gone := s.relay("gone", restart)
		s.disconnect(a)
		if _, ok := <-gone.Events(); ok {
			t.Error("an agent that has gone answers")
		}
		back := s.connect("a", "1")
		s.takeLog()
		back.answerDone("gone")
		if s.expectLog(""); s.IsBusy("prod") {
			t.Error("the account is busy")
		}
		gone.Close()
	})
}

// TestRelayRefusesWhatIsLate checks the deadline when the operation is sent, however long ago it was asked for.
func TestRelayRefusesWhatIsLate(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		r, err := s.Relay(s.t.Context(), RelayRequest{From: "s2", Operation: "op", Account: "prod"})
		if err != nil {
			t.Fatal(err)
		}
		op := vedette.Operation{ID: "op", Account: "prod", Args: scale, Deadline: time.Now().Add(time.Minute)}
		time.Sleep(time.Hour)
		if err := r.Send(op); vedette.KindOf(err) != vedette.Unavailable {
			t.Errorf("got %v", err)
		}
		s.disconnect(a)
		s.connect("b", "1")
		op.Deadline = time.Now().Add(time.Minute)
		if err := r.Send(op); !IsNotHere(err) {
			t.Errorf("another agent serves the account: got %v", err)
		}
		r.Close()
		s.expectLog("")
		if s.budget.Stats().Used != 0 || s.IsBusy("prod") {
			t.Error("what was not sent is held")
		}
	})
}

// TestLocalOperationIsNotTakenOver relays an operation with the id of one that this server has accepted.
func TestLocalOperationIsNotTakenOver(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connect("a", "1")
		s.start("op", restart)
		r, err := s.Relay(s.t.Context(), RelayRequest{From: "s2", Operation: "op", Account: "prod"})
		if err != nil {
			t.Fatal(err)
		}
		s.takeLog()
		if err := r.Send(vedette.Operation{ID: "op", Account: "prod", Args: restart, Deadline: time.Now().Add(time.Minute)}); vedette.KindOf(err) != vedette.Conflict {
			t.Errorf("got %v", err)
		}
		r.Close()
		a.answerDone("op")
		s.expectLog("a/1: forget op", "op done 200 ")
	})
}

// TestEndedWaitsForTheRecord waits for an operation until its end is in the history, also if it is lost, which its caller does not wait
// for.
func TestEndedWaitsForTheRecord(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.connect("a", "1")
		s.start("op", restart)
		s.takeLog()
		for _, id := range []vedette.OperationID{"op", "unknown"} {
			go func() {
				err := s.AwaitEnd(s.t.Context(), "s1", id)
				s.mu.Lock()
				state := s.rows[id].State
				s.mu.Unlock()
				s.logf("%s: %s %s", id, state, vedette.KindOf(err))
			}()
		}
		s.expectLog("unknown:  " + string(vedette.NotFound))
		time.Sleep(time.Minute)
		if got := s.takeLog(); !strings.HasSuffix(got, "op: lost ") {
			t.Error(got)
		}
		if err := s.AwaitEnd(s.t.Context(), "s2", "op"); vedette.KindOf(err) != vedette.Unavailable {
			t.Errorf("without other servers: got %v", err)
		}
	})
}
