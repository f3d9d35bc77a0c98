package uplink

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// phase is what has become of a connection in the exploration.
type phase string

const (
	opening phase = "opening"
	ready   phase = "ready" // it has its Welcome
	serving phase = "serving"
	gone    phase = "gone"
)

// connectionWorld is what executes the effects of connections in the exploration.
type connectionWorld struct {
	*connections
	now      time.Time
	phases   map[connectionID]phase
	ending   map[connectionID]bool // endConnection was emitted
	awaited  connectionID          // whose operations are awaited; 0 for none
	pausing  bool
	paused   time.Duration // the last pause
	problems []string
}

func newConnectionWorld() *connectionWorld {
	return &connectionWorld{connections: &connections{pause: reconnectPause{pauses: Backoff{}.pauses(0)}}, now: time.Now(),
		phases: map[connectionID]phase{}, ending: map[connectionID]bool{}}
}

func (w *connectionWorld) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// do lets something happen, and executes what follows.
func (w *connectionWorld) do(what string) {
	verb, rest, _ := strings.Cut(what, " ")
	var id connectionID
	_, _ = fmt.Sscan(rest, &id)
	var e connectionEvent
	switch verb {
	case "start":
		e = started{}
	case "wait":
		w.now = w.now.Add(time.Minute)
		return
	case "pause-over":
		w.pausing, e = false, pauseOver{}
	case "welcome":
		w.phases[id], e = ready, welcomed{id}
	case "drain":
		e = drained{id: id, after: new(time.Duration(0))}
	case "old-drain":
		e = drained{id: id}
	case "operations-end":
		w.awaited, e = 0, operationsEnded{id}
	case "end":
		w.phases[id], e = gone, ended{id: id}
		if w.awaited == id {
			w.awaited = 0
		}
	}
	wasStable := w.phases[id] == serving && w.now.Sub(w.servesSince) > stableAfter
	for _, effect := range w.step(e, w.now) {
		w.execute(e, effect, wasStable)
	}
}

func (w *connectionWorld) execute(e connectionEvent, effect connectionEffect, wasStable bool) {
	switch effect := effect.(type) {
	case openConnection:
		_, isStart := e.(started)
		_, isPauseOver := e.(pauseOver)
		if !isStart && !isPauseOver {
			w.problem("%d is opened without a pause, after %T", effect.id, e)
		}
		w.phases[effect.id] = opening
	case serveOver:
		for id, p := range w.phases {
			if p == serving {
				w.problem("%d is to serve while %d does", effect.id, id)
			}
		}
		if w.phases[effect.id] != ready || w.ending[effect.id] {
			w.problem("%d is to serve, but it is %s, ending: %t", effect.id, w.phases[effect.id], w.ending[effect.id])
		}
		w.phases[effect.id] = serving
	case endConnection:
		if w.phases[effect.id] == gone {
			w.problem("%d is to end and is gone", effect.id)
		}
		if w.phases[effect.id] == serving && !w.isReady {
			w.problem("%d is to end, and no other is ready", effect.id)
		}
		w.ending[effect.id] = true
		if w.ending[w.current] && w.ending[w.next] && w.phases[w.current] != gone && w.phases[w.next] != gone {
			w.problem("both connections are ending")
		}
	case awaitOperations:
		w.awaited = effect.id
	case pauseFor:
		w.pausing, w.paused = true, effect.duration
		if d, isDrain := e.(drained); effect.duration <= 0 && (!isDrain || d.after == nil || !wasStable) {
			w.problem("no pause after %+v", e)
		}
	}
}

// moves returns what may happen.
func (w *connectionWorld) moves() (all []string) {
	if w.pausing {
		all = append(all, "pause-over")
	}
	if w.awaited != 0 {
		all = append(all, fmt.Sprint("operations-end ", w.awaited))
	}
	for id, p := range w.phases {
		switch p {
		case opening:
			all = append(all, fmt.Sprint("welcome ", id), fmt.Sprint("end ", id))
		case ready, serving:
			all = append(all, fmt.Sprint("drain ", id), fmt.Sprint("old-drain ", id), fmt.Sprint("end ", id))
		case gone:
		}
	}
	slices.Sort(all)
	return append(all, "wait")
}

func (w *connectionWorld) check() {
	alive := 0
	for id, p := range w.phases {
		if p != gone {
			alive++
		}
		if p == serving != (id == w.current) {
			w.problem("%d is %s, and %d is the current one", id, p, w.current)
		}
	}
	if alive > 2 {
		w.problem("%d connections are open", alive)
	}
	if w.current == 0 && w.next == 0 && !w.pausing {
		w.problem("nothing is opened, and nothing waits")
	}
	if w.isDraining && w.next == 0 && !w.pausing {
		w.problem("the server of %d asks to connect again, and nothing is opened", w.current)
	}
}

// settle lets all go well, and checks that then a connection serves whose server has not asked to connect again.
func (w *connectionWorld) settle() {
	for range 20 {
		for id := range w.ending {
			if w.phases[id] != gone {
				w.do(fmt.Sprint("end ", id))
			}
		}
		switch {
		case w.phases[w.next] == opening:
			w.do(fmt.Sprint("welcome ", w.next))
		case w.awaited != 0:
			w.do(fmt.Sprint("operations-end ", w.awaited))
		case w.pausing:
			w.do("pause-over")
		}
	}
	if w.current == 0 || w.isDraining || w.next != 0 {
		w.problem("in the end, %d serves, it is to be replaced: %t, and %d is being opened", w.current, w.isDraining, w.next)
	}
}

func (w *connectionWorld) fingerprint() string {
	return fmt.Sprint(w.current != 0, w.isDraining, w.next != 0, w.isReady, w.isRejected, w.isEnding, w.nextDrain != nil, w.phases[w.next], w.ending[w.current],
		w.ending[w.next], w.awaited != 0, w.pausing, w.pause.bound, w.now.Sub(w.servesSince) > stableAfter)
}

// TestConnectionsInEveryOrder runs all orders of what may happen to connections, and checks what must always hold.
func TestConnectionsInEveryOrder(t *testing.T) {
	run := func(path []string) *connectionWorld {
		w := newConnectionWorld()
		for _, what := range path {
			w.do(what)
		}
		return w
	}
	seen := map[string]bool{}
	paths := 0
	for frontier := [][]string{{"start"}}; len(frontier) > 0; {
		var next [][]string
		for _, path := range frontier {
			w := run(path)
			w.check()
			paths++
			state := w.fingerprint()
			moves := w.moves()
			w.settle()
			if len(w.problems) > 0 {
				t.Fatalf("after %v: %s", path, strings.Join(w.problems, "; "))
			}
			if seen[state] {
				continue
			}
			seen[state] = true
			for _, m := range moves {
				next = append(next, append(slices.Clip(path), m))
			}
		}
		frontier = next
	}
	t.Logf("%d states, %d paths", len(seen), paths)
	if len(seen) < 50 {
		t.Errorf("got %d states only", len(seen))
	}
}

// TestDrainsDoNotSpin checks the pauses before an agent connects again because servers ask for it.
func TestDrainsDoNotSpin(t *testing.T) {
	w := newConnectionWorld()
	w.do("start")
	w.do("welcome 1")
	w.do("wait")
	w.do("drain 1")
	if w.paused != 0 {
		t.Errorf("got a pause of %v, want none: the server has said when", w.paused)
	}
	w.step(drained{id: 1, after: new(time.Hour)}, w.now) // again
	for n, bound := range []time.Duration{2 * time.Second, 4 * time.Second, 4 * time.Second, 4 * time.Second} {
		w.do("pause-over")
		w.do(fmt.Sprint("welcome ", w.next))
		w.do(fmt.Sprint("operations-end ", w.awaited))
		w.do(fmt.Sprint("end ", w.current))
		w.do(fmt.Sprint("drain ", w.current))
		if w.paused < bound/8 || w.paused > bound {
			t.Errorf("server %d asks at once to connect again: got a pause of %v, want up to %v", n, w.paused, bound)
		}
	}
	w = newConnectionWorld()
	w.do("start")
	w.do("welcome 1")
	w.do("wait")
	effects := w.step(drained{id: 1, after: new(365 * 24 * time.Hour)}, w.now)
	if want := []connectionEffect{pauseFor{maxDrainDelay}}; !slices.Equal(effects, want) {
		t.Errorf("a server that asks to wait for a year: got %v, want %v", effects, want)
	}
}
