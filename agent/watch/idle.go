package watch

import (
	"errors"
	"os"
	"time"

	"github.com/vedette-io/vedette/agent/kube"
)

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
func (f *feed) planWatch(isShort bool) watchPlan {
	idleTimeout := f.w.cfg.IdleTimeout
	plan := watchPlan{duration: randomDuration(f.w.cfg.MinWatchTimeout, f.w.cfg.MaxWatchTimeout),
		timeouts: kube.Timeouts{Header: idleTimeout * 2 / 5, Progress: idleTimeout}}
	if isShort {
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
