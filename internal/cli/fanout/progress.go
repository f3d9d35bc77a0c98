package fanout

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
)

// progress is how far the changes in one account came.
type progress struct {
	done     int              // changes that are done
	sent     int              // changes, whatever their outcome
	unknown  []unknownOutcome // changes that may or may not have taken effect
	complete bool             // nothing is left to do
}

// unknownOutcome is a change that was sent and whose outcome is not known.
type unknownOutcome struct{ id, what string }

// add adds a change that was sent. An operation that was not started has an outcome without state.
func (p *progress) add(what string, out client.Outcome) {
	switch out.State {
	case vedette.Done:
		p.done++
	case vedette.Lost:
		p.unknown = append(p.unknown, unknownOutcome{out.ID, what})
	case "": // it was not started
		return
	}
	p.sent++
}

// endGrace is how long operations that were sent may still run after a command was interrupted.
const endGrace = 3 * time.Second

// withGrace returns a context that ends a while after ctx.
func (fan *FanOut) withGrace(ctx context.Context) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(endGrace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-later.Done():
		}
	})
	return later, func() {
		stop()
		cancel()
	}
}

// state is how an account ended in a command that was ended early.
type state string

// The states, in the order in which they are printed.
const (
	stateDone       state = "done"
	stateFailed     state = "failed"
	stateUnknown    state = "unknown"    // a change was sent, and its outcome is not known
	stateIncomplete state = "incomplete" // some changes are done, and others were not begun or waited for
	stateNotBegun   state = "not begun"  // nothing was changed
)

var states = [...]state{stateDone, stateFailed, stateUnknown, stateIncomplete, stateNotBegun}

func (r *Run) state() state {
	switch {
	case len(r.progress.unknown) > 0:
		return stateUnknown
	case r.failed > 0:
		return stateFailed
	case r.progress.complete:
		return stateDone
	case r.progress.done > 0:
		return stateIncomplete
	}
	return stateNotBegun
}

// printProgress prints which accounts are in which state, if anything was sent that changes something.
// The names are separated as --account accepts them.
func (fan *FanOut) printProgress() {
	byState, sent := map[state][]string{}, 0
	var unknown []string
	for _, run := range fan.runs {
		sent += run.progress.sent
		byState[run.state()] = append(byState[run.state()], run.Account)
		for _, u := range run.progress.unknown {
			unknown = append(unknown, fmt.Sprintf("  %s: %s: see `vedette ops get %s`", run.Account, u.what, u.id))
		}
	}
	if sent == 0 {
		return
	}
	var counts, lines []string
	for _, s := range states {
		names := byState[s]
		if len(names) == 0 {
			continue
		}
		counts = append(counts, fmt.Sprintf("%d %s", len(names), s))
		lines = append(lines, fmt.Sprintf("%s: %s", s, strings.Join(names, ",")))
		if s == stateUnknown {
			lines = append(lines, unknown...)
		}
	}
	fan.spin.Clear()
	fmt.Fprintf(fan.errOut, "Ended early in %s: %s.\n", output.Count(len(fan.runs), "account"), strings.Join(counts, ", "))
	for _, line := range lines {
		fmt.Fprintln(fan.errOut, output.Sanitize(line))
	}
}
