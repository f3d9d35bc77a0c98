package watch

import (
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
)

// maxRechecks is how often discovery must omit a feed, after the first time, before the
// feed counts as gone.
const maxRechecks = 2

// suspectMissing returns the groups of feeds that existed before, here or at the server,
// and that discovery now omits. An API server that has just started responds before it
// has collected its custom kinds. If the agent believed it at once, the objects of these
// kinds would be removed. So such groups count as unknown until discovery has omitted the
// feed three times, some seconds apart. Discovery runs at that pace while any feed is
// suspect, because an unknown group also keeps its feeds that are really gone.
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
