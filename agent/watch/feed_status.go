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
	// Verified is when the feed was last found to equal the cluster; zero if it was not since it began.
	Verified time.Time
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
			all[len(all)-1].Verified = f.lastVerified()
		}
	}
	slices.SortFunc(all, func(a, b FeedStatus) int { return compareFeeds(a.Feed, b.Feed) })
	return all
}

// compareFeeds orders feeds by kind and namespace.
func compareFeeds(a, b vedette.Feed) int {
	return cmp.Or(cmp.Compare(a.Kind.String(), b.Kind.String()), cmp.Compare(a.Namespace, b.Namespace))
}
