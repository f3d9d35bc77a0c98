package watch

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

// errIdleWatch says that two watches in a row said nothing, of which the API server
// should have ended the second itself.
var errIdleWatch = errors.New("the watch is silent, though the API server answers: something on the way, such as a proxy, holds back or loses what it says")

// watchPlan is how long a watch shall last, and how long it may say nothing.
type watchPlan struct {
	duration time.Duration
	timeouts kube.Timeouts
}

// planWatch plans the next watch. An API server sends a bookmark each minute, so
// one that says nothing for longer may have been lost on the way, where neither
// TCP nor HTTP/2 notices. After such a silence comes a short watch from the same
// mark, which the API server ends itself: that it ends in time, or says anything,
// shows that the way is open, and its end carries along whatever a proxy may have
// held back. So whatever was missed is known within Silence, the two fifths of it
// that the head may take and the fifth for which a short watch is waited for: two
// minutes. API servers without bookmarks cost a request more each minute and a
// half, and no list.
func (f *feed) planWatch() watchPlan {
	idleTimeout := f.w.cfg.IdleTimeout
	plan := watchPlan{duration: randomDuration(f.w.cfg.MinWatchTimeout, f.w.cfg.MaxWatchTimeout), timeouts: kube.Timeouts{Header: idleTimeout * 2 / 5, Progress: idleTimeout}}
	if f.wasIdle {
		plan.duration, plan.timeouts.Progress = idleTimeout*2/15, idleTimeout/5
	}
	return plan
}

// isIdleTimeout reports whether a watch ended because it said nothing. Watches of
// Secrets are ended by their connections' deadlines too.
func isIdleTimeout(err error) bool {
	var stall *kube.StallError
	return errors.As(err, &stall) && !stall.LargeObject || errors.Is(err, os.ErrDeadlineExceeded)
}

// handleIdleWatch decides what follows from silence: a short watch at once, or, where
// that was silent too, a failure. Nothing is live that nobody hears of.
func (f *feed) handleIdleWatch() error {
	if !f.wasIdle {
		f.wasIdle = true
		return nil
	}
	f.madeProgress = false
	return errIdleWatch
}

// endIdle says that the API server is heard.
func (f *feed) endIdle(ctx context.Context) error {
	f.wasIdle = false
	return f.reportStatus(ctx, vedette.FeedLive, "")
}
