package dispatch

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/roster"
)

// visitor connects an agent that serves another account.
func (s *stage) visitor(id vedette.AgentID, process string) *agent {
	m := &roster.Member{Agent: roster.Agent{ID: id}}
	a := &agent{stage: s, name: string(id) + "/" + process}
	a.visit = s.Attach(m, process, a)
	return a
}

// TestOnlyItsHolderAnswers has agents answer an operation that they were not given:
// nobody hears of it, and nothing of it is stored.
func TestOnlyItsHolderAnswers(t *testing.T) {
	onStage(t, func(s *stage) {
		liars := []*agent{s.visitor("lab", "1"), s.visitor("a", "2"), s.visitor("a", ""), s.visitor("b", "1")}
		a := s.connect("a", "1")
		s.do("op", scale)
		s.do("log", vedette.LogsArgs{Target: web})
		s.heard()
		forged := vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, CacheObject: &vedette.Object{Key: vedette.Key{Name: "forged"}, ResourceVersion: "9"}}
		for _, liar := range liars {
			liar.answers(forged)
			s.want(liar.name + " may forget op")
			if _, ok := liar.visit.Claim("log", true); ok {
				t.Errorf("%s may send the log", liar.name)
			}
			if liar.visit.Outcome(vedette.Outcome{ID: "log", State: vedette.Done, Stream: io.NopCloser(strings.NewReader("forged"))}) {
				t.Errorf("the log of %s is taken", liar.name)
			}
			s.want("") // and nobody has it end elsewhere
		}
		if got, want := s.Forged(), int64(3*len(liars)); got != want {
			t.Errorf("%d forged outcomes were counted, want %d", got, want)
		}
		a.answers(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, CacheObject: &vedette.Object{Key: vedette.Key{Name: "web"}, ResourceVersion: "7"}})
		s.want("a/1 may forget op", "stored  web at 7", "op done 200 ")
	})
}

// TestTheHolderAnswersOnAnotherConnection holds that a process answers on its next
// connection too, whether it has its account again or not, and that the process
// which had an operation before another one may still tell its end.
func TestTheHolderAnswersOnAnotherConnection(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		s.do("op", scale)
		s.do("two", scale)
		s.cut(a)
		s.heard()
		again := s.visitor("a", "1")
		again.done("op")
		s.want("a/1 may forget op", "op done 200 ")
		s.connect("b", "2")
		s.want("b/2 is sent two")
		again.done("two")
		s.want("a/1 may forget two", "two done 200 ")
	})
}

// TestClaims holds that an outcome is read once at a time, and a log of logs only.
func TestClaims(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		s.do("op", scale)
		s.heard()
		release, ok := a.visit.Claim("op", false)
		if _, again := a.visit.Claim("op", false); !ok || again {
			t.Errorf("claimed %v, and again %v", ok, again)
		}
		s.want("") // an outcome that is on its way is not to be forgotten
		release()
		if _, log := a.visit.Claim("op", true); log {
			t.Error("an operation that is none of logs is answered with a log")
		}
		if _, ok := a.visit.Claim("other", false); ok {
			t.Error("an operation that is not there can be answered")
		}
		s.want("a/1 may forget other")
		if release, ok = a.visit.Claim("op", false); !ok {
			t.Error("it can't be claimed again")
		}
		a.done("op")
		release()
		s.heard()
	})
}

// TestNamesThatNobodyCanHave holds that an operation which neither the protocol nor
// the history can carry ends by itself: no agent is sent it.
func TestNamesThatNobodyCanHave(t *testing.T) {
	onStage(t, func(s *stage) {
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
				t.Errorf("operation %s is %s %d %s", op.ID, out.State, out.Status, out.Message)
			}
		}
		s.want("")
		s.do("log", vedette.LogsArgs{Target: web, SinceTime: time.Now()})
		s.want("a/1 is sent log")
	})
}
