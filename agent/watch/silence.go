package watch

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/vedette-io/vedette"
)

// errMute says that two watches in a row said nothing, of which the API server
// should have ended the second itself.
var errMute = errors.New("the watch is silent, though the API server answers: something on the way, such as a proxy, holds back or loses what it says")

// watchPlan is how long a watch shall last, and how long it may say nothing.
type watchPlan struct {
	last   time.Duration
	limits limits
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
	silence := f.w.cfg.Silence
	plan := watchPlan{last: between(f.w.cfg.LeastWatch, f.w.cfg.MostWatch), limits: limits{head: silence * 2 / 5, body: silence}}
	if f.hushed {
		plan.last, plan.limits.body = silence*2/15, silence/5
	}
	return plan
}

// silent reports whether a watch ended because it said nothing. Watches of
// Secrets are ended by their connections' deadlines too.
func silent(err error) bool {
	var stall *stallError
	return errors.As(err, &stall) && !stall.big || errors.Is(err, os.ErrDeadlineExceeded)
}

// fellSilent decides what follows from silence: a short watch at once, or, where
// that was silent too, a failure. Nothing is live that nobody hears of.
func (f *feed) fellSilent() error {
	if !f.hushed {
		f.hushed = true
		return nil
	}
	f.progress = false
	return errMute
}

// spoke says that the API server is heard.
func (f *feed) spoke(ctx context.Context) error {
	f.hushed = false
	return f.tell(ctx, vedette.FeedLive, "")
}
