package watch

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

// errIdleWatch reports that two watches in a row were silent, of which the API server
// should have ended the second one itself.
var errIdleWatch = errors.New("the watch receives nothing although the API server responds: check whether a proxy on the way buffers or drops responses")

// watchPlan is how long a watch should last and how long it may be silent.
type watchPlan struct {
	duration time.Duration
	timeouts kube.Timeouts
}

// requested is the duration that is asked of the API server, in whole seconds.
func (p watchPlan) requested() time.Duration {
	return max(time.Second, p.duration.Truncate(time.Second))
}

// planWatch plans the next watch. An API server sends a bookmark each minute. If a watch
// is silent for longer, it may have been lost on the way, which neither TCP nor HTTP/2
// notices behind a proxy. The next watch is then a short one from the same mark, which
// the API server ends itself. If it ends in time, or sends anything, the way is open, and
// its end carries everything that a proxy may have buffered.
//
// So a lost event is noticed within IdleTimeout, plus two fifths of it for the response
// header, plus one fifth for the short watch: two minutes by default. API servers without
// bookmarks cost one more request each 90 seconds, and no list.
func (f *feed) planWatch() watchPlan {
	idleTimeout := f.w.cfg.IdleTimeout
	plan := watchPlan{duration: randomDuration(f.w.cfg.MinWatchTimeout, f.w.cfg.MaxWatchTimeout),
		timeouts: kube.Timeouts{Header: idleTimeout * 2 / 5, Progress: idleTimeout}}
	if f.wasIdle {
		plan.duration, plan.timeouts.Progress = idleTimeout*2/15, idleTimeout/5
	}
	return plan
}

// isIdleTimeout reports whether a watch ended because it was silent. Watches of Secrets
// may also end by the deadline of their connection.
func isIdleTimeout(err error) bool {
	var stall *kube.StallError
	return errors.As(err, &stall) && !stall.LargeObject || errors.Is(err, os.ErrDeadlineExceeded)
}

// handleIdleWatch decides what follows a silent watch: a short watch at once, or, if that
// was silent too, a failure, because a feed without news must not be reported as live.
func (f *feed) handleIdleWatch() error {
	if !f.wasIdle {
		f.wasIdle = true
		f.w.verifier.disturb(f)
		return nil
	}
	f.madeProgress = false
	return errIdleWatch
}

// endIdle notes that the watch is not silent anymore.
func (f *feed) endIdle(ctx context.Context) error {
	f.wasIdle = false
	return f.reportStatus(ctx, vedette.FeedLive, "")
}
