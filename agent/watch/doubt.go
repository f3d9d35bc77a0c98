package watch

import (
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
)

// mostDoubts is how often discovery must leave a feed out, after the first time,
// to be believed.
const mostDoubts = 2

// doubt looks for feeds that were there, at the server too, and that discovery
// now leaves out. An API server that has just started answers before it has
// gathered its custom kinds; taken at its word it would cost their objects. So
// the groups of such feeds count as unknown until discovery has said so three
// times, some seconds apart. It is asked again at that pace while any feed is in
// doubt, since its group keeps those too that are believed to be gone.
func (w *Watcher) doubt(wanted []Wanted, marks map[vedette.Feed]vedette.Mark) (groups []string) {
	known := map[vedette.Feed]bool{}
	for feed := range marks {
		known[feed] = true
	}
	for _, old := range w.declared {
		known[old.Feed] = true
	}
	for _, n := range wanted {
		delete(known, n.Feed)
	}
	missing := map[vedette.Feed]int{}
	doubted := map[string]bool{}
	doubts, believed := 0, 0
	for feed := range known {
		n := w.missing[feed] + 1
		missing[feed] = n
		if n <= mostDoubts {
			doubted[feed.Kind.Group] = true
			doubts = max(doubts, n)
		} else if n == mostDoubts+1 {
			believed = n
		}
	}
	w.missing, w.looks = missing, doubts
	if doubts == 0 {
		w.looks = believed
	}
	return slices.Sorted(maps.Keys(doubted))
}
