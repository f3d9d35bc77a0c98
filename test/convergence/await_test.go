package convergence

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/vedette-io/vedette/test/controlplane"
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
	var found, last []string
	agree := w.eventually(convergenceTimeout, func(context.Context) bool {
		last = found
		found = w.differences(w.t.Context()) // has a timeout of its own, because a canceled comparison would find nothing
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
	all := []*process{w.server}
	for _, a := range w.agents {
		all = append(all, a.process)
	}
	for _, p := range all {
		if err := p.unexpectedExit(); err != nil {
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
