package history

import (
	"fmt"
	"maps"
	"slices"
)

// EventType is the type of an event.
type EventType string

// The types. Ready says that all objects that existed were sent; Restart that the reader has connected again, and is sent them anew.
const (
	Present EventType = "present" // added or modified
	Deleted EventType = "deleted"
	Ready   EventType = "ready"
	Restart EventType = "restart"
)

// Event is what a reader of one stream of changes has received.
type Event struct {
	Type    EventType
	Object  string // with its account
	UID     string // of Present
	Version uint64 // resourceVersion, of Present; UnknownVersion if the store does not know it
}

// UnknownVersion says that an object exists, in whichever version.
const UnknownVersion uint64 = 0

func (e Event) String() string {
	return fmt.Sprintf("%s %s %s at %d", e.Type, e.Object, e.UID, e.Version)
}

// Events is the result of a check of one reader.
type Events struct {
	Violations []string
	// Repeated is how often the last version of an object was sent again. That is allowed: an event says how the object is when it is sent,
	// and two changes may have preceded it.
	Repeated int
	Last     map[string]Event // by object: what the reader holds at the end
}

// CheckEvents checks the events of one reader in their order, with all versions that the clusters had, in theirs. No version of
// an object comes back once a later one has come, each was in the cluster, and no stream has more deletions than there were. An
// object that was created and deleted at once may be deleted without having been sent. What a reader held before a restart and is
// not sent anew has been deleted in between.
func CheckEvents(events []Event, clusters map[string][]Version) (result Events) {
	held := map[string]Event{}    // what the reader has now
	passed := map[string]int{}    // by object: the latest version so far, over restarts, as its index in the cluster's and one
	sent := map[string]bool{}     // since the last restart
	deletions := map[string]int{} // the same
	isReady := false
	bad := func(format string, args ...any) {
		result.Violations = append(result.Violations, fmt.Sprintf(format, args...))
	}
	for i, e := range events {
		switch e.Type {
		case Restart:
			isReady = false
			sent, deletions = map[string]bool{}, map[string]int{}
		case Ready:
			for object := range held {
				if !sent[object] {
					delete(held, object)
				}
			}
			isReady = true
		case Present:
			_, exists := held[e.Object]
			held[e.Object], sent[e.Object] = e, true
			if e.Version == UnknownVersion {
				continue
			}
			last := passed[e.Object]
			at := find(clusters[e.Object], e, max(last-1, 0))
			if again := find(clusters[e.Object], e, last); at == last-1 && !exists && again >= 0 { // a restore has brought it back
				at = again
			}
			switch {
			case find(clusters[e.Object], e, 0) < 0:
				bad("event %d is of a version that the cluster never had: %v", i, e)
			case at < 0:
				bad("event %d goes back: %v after version %d", i, e, clusters[e.Object][last-1].Version)
			case exists && isReady && at == last-1:
				result.Repeated++
			case !exists && isReady && at == last-1:
				bad("event %d comes back after its deletion: %v", i, e)
			}
			passed[e.Object] = max(last, at+1)
		case Deleted:
			deletions[e.Object]++
			if was := countDeletions(clusters[e.Object]); deletions[e.Object] > was {
				bad("event %d deletes for the %d. time what was deleted %d times: %v", i, deletions[e.Object], was, e)
			}
			delete(held, e.Object)
			delete(sent, e.Object)
		}
	}
	result.Last = held
	return result
}

// find returns the first index, from one on, at which an object had the version of an event; -1 if there is none.
func find(versions []Version, e Event, from int) int {
	i := slices.IndexFunc(versions[min(from, len(versions)):], func(v Version) bool {
		return v.UID == e.UID && v.Version == e.Version && v.Value != Absent
	})
	if i < 0 {
		return -1
	}
	return from + i
}

func countDeletions(versions []Version) (n int) {
	for _, v := range versions {
		if v.Value == Absent {
			n++
		}
	}
	return n
}

// CompareFinal compares what a reader holds at the end with the clusters.
func CompareFinal(held map[string]Event, clusters map[string]Version) (found []string) {
	for _, object := range slices.Sorted(maps.Keys(clusters)) {
		want := clusters[object]
		e, exists := held[object]
		switch {
		case want.Value == Absent && exists:
			found = append(found, fmt.Sprintf("the last event of %s is %v, but it was deleted", object, e))
		case want.Value != Absent && !exists:
			found = append(found, fmt.Sprintf("the last event of %s is a deletion or lost, but it is at %d", object, want.Version))
		case want.Value != Absent && (e.UID != want.UID || e.Version != want.Version):
			found = append(found, fmt.Sprintf("the last event of %s is %v, but it is %s at %d", object, e, want.UID, want.Version))
		}
	}
	for _, object := range slices.Sorted(maps.Keys(held)) {
		if _, exists := clusters[object]; !exists {
			found = append(found, fmt.Sprintf("the last event of %s is %v, but the cluster never had it", object, held[object]))
		}
	}
	return found
}
