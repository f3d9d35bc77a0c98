package watch

import (
	"context"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
)

// stalls are the reasons why the account as a whole is not well: feeds for which the API
// server stopped in the middle of a response, since other requests to such an API server
// succeed, and discovery that fails, since the feeds that exist do not show it.
type stalls struct {
	mu      sync.Mutex              // held during Put, so that states are reported in order
	reasons map[vedette.Feed]reason // of discovery under the zero Feed
}

// reason is a state of the account and why it is so.
type reason struct {
	state   vedette.FeedState
	message string
}

// discoveryStall is the key of a failed discovery among stalls.
var discoveryStall vedette.Feed

// setStall reports the stall of a feed, or of discovery, as the state of the account.
func (w *Watcher) setStall(ctx context.Context, name vedette.Feed, r reason) error {
	w.stalls.mu.Lock()
	defer w.stalls.mu.Unlock()
	w.stalls.reasons[name] = r
	return w.reportStallsLocked(ctx)
}

// clearStall notes that a feed, or discovery, works again or was stopped.
func (w *Watcher) clearStall(ctx context.Context, name vedette.Feed) error {
	w.stalls.mu.Lock()
	defer w.stalls.mu.Unlock()
	if _, stalled := w.stalls.reasons[name]; !stalled {
		return nil
	}
	delete(w.stalls.reasons, name)
	return w.reportStallsLocked(ctx)
}

// reportStallsLocked reports one of the reasons, that of discovery first, or that there is
// none.
func (w *Watcher) reportStallsLocked(ctx context.Context) error {
	current := reason{state: vedette.FeedLive}
	names := make([]vedette.Feed, 0, len(w.stalls.reasons))
	for name := range w.stalls.reasons {
		names = append(names, name)
	}
	if len(names) > 0 {
		first := slices.MinFunc(names, compareFeeds)
		current = w.stalls.reasons[first]
	}
	return w.reportAccountStatus(ctx, current.state, current.message)
}

func (w *Watcher) reportAccountStatus(ctx context.Context, state vedette.FeedState, message string) error {
	if err := w.sink.Put(ctx, Event{Type: Status, State: state, Message: message}); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return sinkError{err}
	}
	return nil
}
