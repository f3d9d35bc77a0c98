package watch

import (
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

// maxRechecks is how often discovery must omit a feed, after the first time, before the
// feed counts as gone.
const maxRechecks = 2

// suspectMissing returns the groups of feeds that existed before, here or at the server,
// and whose kinds discovery now omits. An API server that has just started responds before it
// has collected its custom kinds. If the agent believed it at once, the objects of these
// kinds would be removed. So such groups count as unknown until discovery has omitted the
// feed three times, some seconds apart. Discovery runs at that pace while any feed is
// suspect, because an unknown group also keeps its feeds that are really gone.
//
// A feed whose group could not be discovered is not suspect, and is not counted either: its
// API server, too, may have just started once it responds. The mark of a feed that counts as
// gone is void, because the server removes its objects.
func (w *Watcher) suspectMissing(cat kube.Catalogue, specs []FeedSpec, marks map[vedette.Feed]vedette.Mark) (groups []string) {
	missingCount := map[vedette.Feed]int{}
	suspectGroups := map[string]bool{}
	rechecks, confirmed := 0, 0
	for feed := range w.omittedFeeds(cat, specs, marks) {
		n := w.missing[feed] + 1
		missingCount[feed] = n
		if n <= maxRechecks {
			suspectGroups[feed.Kind.Group] = true
			rechecks = max(rechecks, n)
			continue
		}
		delete(marks, feed)
		if n == maxRechecks+1 {
			confirmed = n
		}
	}
	w.missing, w.rechecks = missingCount, rechecks
	if rechecks == 0 {
		w.rechecks = confirmed
	}
	return slices.Sorted(maps.Keys(suspectGroups))
}

// omittedFeeds returns the feeds that existed before and whose kinds discovery omits. If the
// kind is served, the selection has decided against the feed, for example because the kind
// is no longer namespaced.
func (w *Watcher) omittedFeeds(cat kube.Catalogue, specs []FeedSpec, marks map[vedette.Feed]vedette.Mark) map[vedette.Feed]bool {
	omitted := map[vedette.Feed]bool{}
	for feed := range marks {
		omitted[feed] = true
	}
	for _, old := range w.declared {
		omitted[old.Feed] = true
	}
	for _, n := range specs {
		delete(omitted, n.Feed)
	}
	served := servedKinds(cat)
	maps.DeleteFunc(omitted, func(feed vedette.Feed, _ bool) bool {
		return served[feed.Kind] || slices.Contains(cat.UnknownGroups, feed.Kind.Group)
	})
	return omitted
}

func servedKinds(cat kube.Catalogue) map[vedette.Kind]bool {
	served := make(map[vedette.Kind]bool, len(cat.Resources))
	for _, r := range cat.Resources {
		served[r.Kind] = true
	}
	return served
}
