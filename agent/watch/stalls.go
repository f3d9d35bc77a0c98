package watch

import (
	"context"
	"errors"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

// stalls are the feeds for which the API server stopped in the middle of a response.
// Other requests to such an API server succeed, so the state of the account reports the
// stall too.
type stalls struct {
	mu    sync.Mutex // held during Put, so that states are reported in order
	feeds map[vedette.Feed]bool
}

// noteStall reports the stall of a feed as the state of the account.
func (w *Watcher) noteStall(ctx context.Context, f *feed, err error) error {
	var stall *kube.StallError
	if !errors.As(err, &stall) && !errors.Is(err, errIdleWatch) {
		return nil
	}
	w.stalls.mu.Lock()
	defer w.stalls.mu.Unlock()
	w.stalls.feeds[f.Feed] = true
	return w.reportAccountStatus(ctx, vedette.FeedFailing, f.Feed.String()+": "+f.statusMessage(err))
}

// clearStall notes that a feed works again or was stopped.
func (w *Watcher) clearStall(ctx context.Context, f *feed) error {
	w.stalls.mu.Lock()
	defer w.stalls.mu.Unlock()
	if !w.stalls.feeds[f.Feed] {
		return nil
	}
	delete(w.stalls.feeds, f.Feed)
	if len(w.stalls.feeds) > 0 {
		return nil
	}
	return w.reportAccountStatus(ctx, vedette.FeedLive, "")
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
