package watch

import (
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
)

// maxRechecks is how often discovery must leave a feed out, after the first time,
// to be believed.
const maxRechecks = 2

// suspectMissing looks for feeds that were there, at the server too, and that discovery
// now leaves out. An API server that has just started answers before it has
// gathered its custom kinds; taken at its word it would cost their objects. So
// the groups of such feeds count as unknown until discovery has said so three
// times, some seconds apart. It is asked again at that pace while any feed is in
// doubt, since its group keeps those too that are believed to be gone.
func (w *Watcher) suspectMissing(specs []FeedSpec, marks map[vedette.Feed]vedette.Mark) (groups []string) {
	known := map[vedette.Feed]bool{}
	for feed := range marks {
		known[feed] = true
	}
	for _, old := range w.declared {
		known[old.Feed] = true
	}
	for _, n := range specs {
		delete(known, n.Feed)
	}
	missingCount := map[vedette.Feed]int{}
	suspectGroups := map[string]bool{}
	rechecks, confirmed := 0, 0
	for feed := range known {
		n := w.missing[feed] + 1
		missingCount[feed] = n
		if n <= maxRechecks {
			suspectGroups[feed.Kind.Group] = true
			rechecks = max(rechecks, n)
		} else if n == maxRechecks+1 {
			confirmed = n
		}
	}
	w.missing, w.rechecks = missingCount, rechecks
	if rechecks == 0 {
		w.rechecks = confirmed
	}
	return slices.Sorted(maps.Keys(suspectGroups))
}
