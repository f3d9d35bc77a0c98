package watch

import (
	"fmt"
	"slices"

	"github.com/vedette-io/vedette"
)

// limitFeeds returns at most Config.MaxFeeds feeds, and how to say that some were left out. A
// feed takes a goroutine, a watch, and some 50 KiB, so a cluster that serves thousands of
// kinds must not decide how many there are. Feeds that exist already stay, so that a kind
// that is added does not displace another one: those that run, and those that the server has
// a mark of.
func (w *Watcher) limitFeeds(specs []FeedSpec, marks map[vedette.Feed]vedette.Mark) (limited []FeedSpec, problem string) {
	if len(specs) <= w.cfg.MaxFeeds {
		return specs, ""
	}
	existing := map[vedette.Feed]bool{}
	for _, n := range w.declared {
		existing[n.Feed] = true
	}
	for feed := range marks {
		existing[feed] = true
	}
	room := w.cfg.MaxFeeds
	for _, n := range specs {
		if existing[n.Feed] {
			room--
		}
	}
	limited = slices.DeleteFunc(slices.Clone(specs), func(n FeedSpec) bool {
		if existing[n.Feed] {
			return false
		}
		room--
		return room < 0
	})
	limited = limited[:min(len(limited), w.cfg.MaxFeeds)]
	return limited, fmt.Sprintf("the account's configuration selects %d feeds in this cluster, and only %d of them are watched: "+
		"select fewer kinds or namespaces, or raise kubernetes.maxFeedsPerAccount", len(specs), len(limited))
}
