package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/test/statediagram"
)

// explorer runs all orders of events.
type explorer struct {
	t       *testing.T
	seen    map[string]bool
	events  int
	diagram statediagram.Diagram
}

// node is a world and how it came about.
type node struct {
	world
	path []string
}

// TestInvariantsHoldInEveryOrder runs all orders of events of a feed, from a mark and without one, until no state is new, and checks after
// each event what must always hold. From each state it also lets the API server answer all that is asked, and checks that the feed becomes
// live.
func TestInvariantsHoldInEveryOrder(t *testing.T) {
	e := &explorer{t: t, seen: map[string]bool{}, diagram: statediagram.Diagram{Initial: string(Starting)}}
	var frontier []node
	for _, mark := range []vedette.Mark{"", "10"} {
		frontier = append(frontier, node{world: newWorld(mark)})
		if next, isNew := e.visit(frontier[len(frontier)-1], Started{}); isNew {
			frontier[len(frontier)-1] = next
		}
	}
	depth := 0
	for ; len(frontier) > 0 && (depth < 10 || !testing.Short()); depth++ {
		var next []node
		for _, n := range frontier {
			for _, event := range n.possible() {
				if longer, isNew := e.visit(n, event); isNew {
					next = append(next, longer)
				}
			}
		}
		frontier = next
	}
	t.Logf("%d states, %d events, up to %d events in a row", len(e.seen), e.events, depth)
	if len(e.seen) < 1000 {
		t.Errorf("got %d states only", len(e.seen))
	}
	if testing.Short() {
		return
	}
	golden.CompareSection(t, "../../../docs/flow.md", "phases of a feed", e.diagram.String())
}

// visit lets an event happen, and reports whether that leads to a state that is new.
func (e *explorer) visit(n node, event Event) (node, bool) {
	w := n.world
	from := w.phase
	if event == nil {
		w.item()
	} else {
		w.happen(event)
	}
	e.events++
	path := append(slices.Clip(n.path), nameOf(event))
	if len(w.problems) > 0 {
		e.t.Fatalf("after %s: %s", strings.Join(path, ", "), strings.Join(w.problems, "; "))
	}
	if event != nil {
		e.diagram.Add(string(from), string(w.phase), statediagram.EventName(event))
	}
	state := w.fingerprint()
	if e.seen[state] {
		return node{}, false
	}
	e.seen[state] = true
	e.checkExit(w, path)
	return node{w, path}, true
}

// fingerprint describes what decides about the future. Of numbers it says only what matters of them.
func (w *world) fingerprint() string {
	f := w.Feed
	return fmt.Sprint(f.phase, f.mark != "", f.mark == w.sinkMark, f.failedResumes, min(f.relists, 3), f.isAnew, f.madeProgress, f.wasSilent, f.isUnreachable, f.isStalled,
		f.state, f.reset != nil, f.reset != nil && *f.reset != "", f.isAnewWanted, f.isInterrupting, f.hasBegun, w.hasTaken,
		fmt.Sprintf("%T", w.underway), w.answered, w.ending, w.isListed, w.isPassed, w.sinkMark != "", w.inSnapshot, w.isStored, w.state.State,
		w.isStalled, w.resetOwed != nil, w.anewOwed, w.anewBegun, w.tries, w.reporting && f.isInterrupting)
}

// checkExit checks that a feed becomes live when the API server answers.
func (e *explorer) checkExit(w world, path []string) {
	steps := 0
	for ; steps < 20 && (w.phase != Watching || w.isInterrupting || w.state.State != vedette.FeedLive); steps++ {
		if event := w.helpful(); event == nil {
			w.item()
		} else {
			w.happen(event)
		}
	}
	if steps == 20 || len(w.problems) > 0 {
		e.t.Fatalf("after %s, when everything is answered: %s, it reports %q; %s", strings.Join(path, ", "), w.phase, w.state.State,
			strings.Join(w.problems, "; "))
	}
}

func nameOf(event Event) string {
	if event == nil {
		return "an object"
	}
	if failed, ok := event.(Failed); ok {
		return "Failed " + failed.Failure.Message
	}
	return fmt.Sprintf("%s%v", statediagram.EventName(event), event)
}
