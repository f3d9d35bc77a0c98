package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/test/statediagram"
)

var (
	blue  = vedette.Cluster{UID: "blue"}
	green = vedette.Cluster{UID: "green"}
	begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// processes are what may serve the account: two processes of one agent, another agent, and one of another cluster.
var processes = []Served{
	{Agent{ID: "a", Process: "a1"}, blue}, {Agent{ID: "a", Process: "a2"}, blue}, {Agent{ID: "b", Process: "b1"}, blue},
	{Agent{ID: "c", Process: "c1"}, green},
}

// operations are one of each sort.
func operations() map[string]vedette.Operation {
	target := vedette.Target{Kind: "deployment", Name: "web"}
	all := map[string]vedette.Operation{}
	for name, op := range map[string]vedette.Operation{
		"read":               {Args: vedette.GetArgs{Target: target}},
		"idempotent change":  {Args: vedette.ScaleArgs{Target: target}},
		"change":             {Args: vedette.ApplyArgs{Manifest: []byte("{}"), Strategy: vedette.StrategyCreateOnly}},
		"deletion":           {Args: vedette.DeleteArgs{Target: target}},
		"deletion by uid":    {Args: vedette.DeleteArgs{Target: target, KnownUID: "u"}},
		"dry run":            {Args: vedette.ApplyArgs{Manifest: []byte("{}")}, DryRun: true},
		"change of any blue": {Args: vedette.ScaleArgs{Target: target}, Cluster: blue},
	} {
		op.ID, op.Account, op.Deadline = "op", "prod", begin.Add(time.Minute)
		all[name] = op
	}
	return all
}

// step is an event of the exploration, and how much time passes before it.
type step struct {
	event  Event
	passes time.Duration
}

// run is an operation with what has come of it.
type run struct {
	*Operation
	sent     map[string]bool // processes that have it
	newest   string          // the process of sent that the last sending added; empty if it had it before
	answered bool            // the outcome is an answer
	ended    *vedette.Outcome
	problems []string
}

// TestInvariantsHoldInEveryOrder runs all orders of six events with operations of each sort, and checks what must always hold.
func TestInvariantsHoldInEveryOrder(t *testing.T) {
	diagram := statediagram.Diagram{Initial: string(Accepted), Final: string(Ended)}
	events := 0
	for name, op := range operations() {
		frontier := [][]step{nil}
		seen := map[string]bool{}
		for range 6 {
			var next [][]step
			for _, path := range frontier {
				for _, s := range possible() {
					longer := append(slices.Clip(path), s)
					r, now := newRun(op), begin
					for i, s := range longer {
						from := r.State()
						now = now.Add(s.passes)
						r.step(s.event, now)
						if i == len(longer)-1 {
							diagram.Add(string(from), string(r.State()), statediagram.EventName(s.event))
						}
					}
					events++
					r.checkEnd(op)
					if len(r.problems) > 0 {
						t.Fatalf("%s: after %v: %s", name, longer, strings.Join(r.problems, "; "))
					}
					if state := r.fingerprint(now); !seen[state] {
						seen[state] = true
						next = append(next, longer)
					}
				}
			}
			frontier = next
		}
		t.Logf("%s: %d states", name, len(seen))
	}
	t.Logf("%d events", events)
	golden.CompareSection(t, "../../../docs/flow.md", "states of an operation", diagram.String())
}

// possible returns all events, at once and after the deadline.
func possible() (all []step) {
	events := []Event{Unserved{}, Looked{Cluster: blue}, Looked{Cluster: green}, Looked{}, Looked{IsGone: true}, Disconnected{}, Returned{},
		Answered{vedette.Outcome{State: vedette.Done}}, Answered{vedette.Outcome{State: vedette.Failed}}, AgentWaitOver{}, Over{}}
	for _, p := range processes {
		events = append(events, p)
	}
	for _, e := range events {
		all = append(all, step{event: e}, step{event: e, passes: time.Hour})
	}
	return all
}

func newRun(op vedette.Operation) *run {
	return &run{Operation: New(op, begin), sent: map[string]bool{}}
}

func (r *run) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

func (r *run) step(e Event, now time.Time) {
	if _, isAnswer := e.(Answered); isAnswer && len(r.sent) == 0 {
		return // an agent that was not sent the operation is not heard
	}
	if _, isReturned := e.(Returned); isReturned && r.State() == Sent {
		delete(r.sent, r.newest)
	}
	wasEnded := r.ended != nil
	effects := r.Step(e, now)
	if wasEnded && len(effects) > 0 {
		r.problem("%v follow after the end", effects)
	}
	for _, effect := range effects {
		switch effect := effect.(type) {
		case Send:
			r.checkSend(e.(Served), effect.Operation, now)
		case End:
			r.ended = &effect.Outcome
			_, r.answered = e.(Answered)
		case LookUpAccount, Cancel, WarnAnotherCluster:
		}
	}
	if _, isOver := e.(Over); isOver && r.ended == nil {
		r.problem("an operation outlives its time")
	}
}

// checkSend checks what a process gets.
func (r *run) checkSend(to Served, op vedette.Operation, now time.Time) {
	r.newest = ""
	if !r.sent[to.Agent.Process] {
		r.newest = to.Agent.Process
	}
	r.sent[to.Agent.Process] = true
	if len(r.sent) > 1 && !op.Idempotent() {
		r.problem("an operation that is not idempotent is sent to %v", r.sent)
	}
	if !now.Before(op.Deadline) {
		r.problem("it is sent after its deadline")
	}
	if !to.Cluster.Same(r.op.Cluster) || op.Cluster != to.Cluster {
		r.problem("it is for cluster %s and sent to %s as %s", r.op.Cluster, to.Cluster, op.Cluster)
	}
	if a, deletes := op.Args.(vedette.DeleteArgs); deletes && len(r.sent) > 1 && (!a.MissingOK || a.OnlyKnown != (a.KnownUID != "")) {
		r.problem("a second process may delete another object, or fail because the first one has deleted it: %+v", a)
	}
}

// checkEnd checks that an outcome says no more than is known.
func (r *run) checkEnd(op vedette.Operation) {
	if (r.State() == Ended) != (r.ended != nil) {
		r.problem("the state is %s, and the outcome %v", r.State(), r.ended)
	}
	if r.ended == nil {
		return
	}
	mayHaveWorked := op.Changes() && len(r.sent) > 0 && !r.answeredAlone()
	switch {
	case r.ended.State == vedette.Lost && (len(r.sent) == 0 || !op.Changes()):
		r.problem("lost, but nothing can have taken effect")
	case r.ended.State == vedette.Failed && mayHaveWorked:
		r.problem("failed, but it may have taken effect at %v", r.sent)
	case r.ended.State != vedette.Done && r.ended.Message == "" && !r.answered:
		r.problem("the outcome does not say why")
	}
}

// answeredAlone reports whether the outcome is the answer of the only process that had the operation.
func (r *run) answeredAlone() bool { return len(r.sent) == 1 && r.answered }

func (r *run) fingerprint(now time.Time) string {
	return fmt.Sprint(r.state, r.isLooked, r.op.Cluster, r.last, r.previous, r.unsent.state, r.unsent.args, r.unsent.last, r.unsent.previous,
		r.newest, slices.Sorted(maps.Keys(r.sent)), now.After(r.op.Deadline), r.ended)
}
