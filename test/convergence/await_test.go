package convergence

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/process"
)

// convergenceTimeout limits how long the world may take to converge after all faults have ended.
// The longest backoff after a failure is 45 seconds, and the machine may be busy.
const convergenceTimeout = 3 * time.Minute

// awaitConvergence waits until store and clusters agree, and returns how long that took. It logs
// the difference that disappeared last. If they do not agree in time, it fails the test with the
// differences.
func (w *world) awaitConvergence() time.Duration {
	w.t.Helper()
	began := time.Now()
	nextReport := began.Add(slowConvergence)
	var found, last []string
	agree := w.eventually(convergenceTimeout, func(context.Context) bool {
		last = found
		found = w.differences(w.t.Context()) // has a timeout of its own, because a canceled comparison would find nothing
		if now := time.Now(); len(found) > 0 && now.After(nextReport) {
			nextReport = now.Add(slowConvergence)
			w.reportSlowConvergence(now.Sub(began), found)
		}
		return len(found) == 0
	})
	if !agree {
		more := ""
		if len(found) > 40 {
			found, more = found[:40], "\n…"
		}
		w.t.Fatalf("store and clusters differ after %v:\n%s%s", convergenceTimeout, strings.Join(found, "\n"), more)
	}
	took := time.Since(began)
	if took > 5*time.Second && len(last) > 0 {
		w.t.Logf("converged after %.1fs; the last of %d differences: %s", took.Seconds(), len(last), last[0])
	}
	return took
}

// slowConvergence is after what time, again and again, a world that does not converge is reported.
const slowConvergence = 20 * time.Second

// reportSlowConvergence logs what differs, and what the programs do meanwhile, because a world that
// converges late is rarely slow when it is run again.
func (w *world) reportSlowConvergence(after time.Duration, found []string) {
	w.t.Helper()
	w.t.Logf("%.0fs after the last fault, %d differences, for example:\n%s", after.Seconds(), len(found), strings.Join(found[:min(len(found), 5)], "\n"))
	processes := []*process.Program{w.server}
	for _, a := range w.agents {
		processes = append(processes, a.Program)
	}
	for _, p := range processes {
		w.t.Logf("the end of the log of %s", p.Tail())
	}
}

// eventually polls a condition, and reports whether it became true in time. It stops if one of our
// programs has exited unexpectedly.
func (w *world) eventually(d time.Duration, condition func(context.Context) bool) bool {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		w.checkProcesses()
		if condition(ctx) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// checkProcesses fails the test if one of our programs has exited unexpectedly.
func (w *world) checkProcesses() {
	w.t.Helper()
	all := []*process.Program{w.server}
	for _, a := range w.agents {
		all = append(all, a.Program)
	}
	for _, p := range all {
		if err := p.Exited(); err != nil {
			w.t.Fatal(err)
		}
	}
}

func isNotFound(err error) bool {
	var status *controlplane.StatusError
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}

// sleep waits for a fixed time.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
