package watch

import (
	"cmp"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// FeedStatus is the state of a feed.
type FeedStatus struct {
	Feed    vedette.Feed
	State   vedette.FeedState
	Message string    // the reason of the State, for people; may be empty
	Since   time.Time // when State or Message changed
}

// Feeds returns the states of all feeds, sorted by kind and namespace. It returns none after Run has ended. It is
// safe for concurrent use.
func (w *Watcher) Feeds() []FeedStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []FeedStatus
	for _, f := range w.feeds {
		if status := f.status.Load(); status != nil {
			all = append(all, *status)
		}
	}
	slices.SortFunc(all, func(a, b FeedStatus) int {
		return cmp.Or(cmp.Compare(a.Feed.Kind.String(), b.Feed.Kind.String()), cmp.Compare(a.Feed.Namespace, b.Feed.Namespace))
	})
	return all
}
