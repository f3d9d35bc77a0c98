package evidence

import (
	"testing"
	"time"

	"github.com/vedette-io/vedette/agent/kube"
)

// TestCompletenessNeedsProof checks up to when a feed is known to be complete. Each step happens at a second; -1 means that
// nothing is known.
func TestCompletenessNeedsProof(t *testing.T) {
	start := time.Now()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	type step struct {
		at   float64
		do   func(e *Feed, now time.Time)
		want float64
	}
	var proof kube.Proof
	answered := func(sent float64) func(*Feed, time.Time) {
		return func(_ *Feed, now time.Time) { proof = kube.Proof{Sent: at(sent), Answered: now.Add(-time.Second)} }
	}
	answeredNow := func(sent float64) func(*Feed, time.Time) {
		return func(_ *Feed, now time.Time) { proof = kube.Proof{Sent: at(sent), Answered: now} }
	}
	listed := func(e *Feed, now time.Time) { e.Listed(now) }
	open := func(e *Feed, now time.Time) { e.Open(nil, now); e.BeginRead(now) }
	closed := func(e *Feed, now time.Time) { e.Close(proof, now) }
	event := func(e *Feed, now time.Time) { e.EndRead(100, true, now); e.BeginRead(now) }
	busy := func(e *Feed, now time.Time) { e.EndRead(100, true, now) }
	full := func(e *Feed, now time.Time) { e.EndRead(100, false, now); e.BeginRead(now) } // there may be more
	idle := func(e *Feed, now time.Time) { e.BeginRead(now) }
	forget := func(e *Feed, _ time.Time) { e.Forget("5") }
	nothing := func(*Feed, time.Time) {}
	for name, steps := range map[string][]step{
		"a list counts from its request":              {{1, listed, 1}, {9, nothing, 1}},
		"an open watch proves nothing":                {{1, listed, 1}, {2, open, 1}, {60, nothing, 1}},
		"an event proves nothing, it may be old":      {{1, listed, 1}, {2, open, 1}, {9, event, 1}},
		"an answer counts from its request":           {{1, listed, 1}, {2, open, 1}, {9, answered(4), 4}},
		"a request from before the watch was open":    {{1, listed, 1}, {3, open, 1}, {9, answered(2), 1}},
		"a mark says nothing of when":                 {{1, open, -1}, {20, nothing, -1}, {21, answered(19), 19}},
		"what has arrived is not read yet":            {{1, listed, 1}, {2, open, 1}, {8.5, busy, 1}, {9, answeredNow(7), 1}, {9.1, idle, 1}, {9.2, nothing, 7}},
		"it is read piece by piece":                   {{1, listed, 1}, {2, open, 1}, {9, answered(4), 4}, {10, full, 4}, {10.001, answeredNow(8), 4}, {10.002, full, 4}, {10.003, event, 8}},
		"no watch is open":                            {{1, listed, 1}, {2, open, 1}, {9, answered(4), 4}, {10, closed, 4}, {20, answered(18), 4}},
		"the watch ends right after the answer":       {{1, listed, 1}, {2, open, 1}, {9, func(e *Feed, now time.Time) { answered(4)(e, now); closed(e, now) }, 4}},
		"a watch that opens late brings its backlog":  {{1, listed, 1}, {60, open, 1}, {62, event, 1}, {62.1, answered(61), 1}, {63, nothing, 61}},
		"its backlog begins late":                     {{1, listed, 1}, {60, open, 1}, {60.3, answered(60.1), 1}, {60.4, event, 1}, {60.6, nothing, 1}, {61, nothing, 60.1}},
		"its reader is slow":                          {{1, listed, 1}, {60, open, 1}, {60.1, busy, 1}, {61, answered(60.5), 1}, {61.5, idle, 1}, {61.6, event, 1}, {62.2, nothing, 60.5}},
		"a reader that was busy for long":             {{1, listed, 1}, {2, open, 1}, {5, busy, 1}, {9, answered(7), 1}, {9.1, idle, 1}, {9.2, event, 1}, {9.6, event, 1}, {10.2, nothing, 7}},
		"it is believed after its backlog":            {{1, listed, 1}, {2, open, 1}, {5, busy, 1}, {9, idle, 1}, {18.9, event, 1}, {19.1, answered(18), 18}},
		"a busy watch is believed after its backlog":  {{1, listed, 1}, {60, open, 1}, {60.2, event, 1}, {60.4, event, 1}, {70.1, event, 1}, {70.2, answered(69), 69}},
		"a watch that opens in time has no backlog":   {{1, listed, 1}, {5, open, 1}, {7, event, 1}, {7.1, answered(6), 6}},
		"a reset voids what the open watch may prove": {{1, listed, 1}, {2, open, 1}, {5, forget, -1}, {9, answered(7), -1}, {10, closed, -1}},
	} {
		e := &Feed{}
		proof = kube.Proof{}
		for _, s := range steps {
			s.do(e, at(s.at))
			want := time.Time{}
			if s.want >= 0 {
				want = at(s.want)
			}
			if got := e.CompleteUntil(proof, at(s.at)); !got.Equal(want) {
				t.Errorf("%s: at %v s: got %v, want %v s", name, s.at, got.Sub(start), s.want)
			}
		}
	}
}
