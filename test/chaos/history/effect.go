package history

import (
	"fmt"
	"maps"
	"slices"
)

// Version is a state that an object had in its cluster.
type Version struct {
	UID     string
	Version uint64 // resourceVersion; of a deletion, that of the deletion
	Value   string // Absent if it was deleted
}

// CheckEffects compares operations with all versions that their objects had in the clusters, in their order: no value appears twice, each write
// that is done has appeared, none that failed has, and nobody has read what never was.
func CheckEffects(all []Operation, clusters map[string][]Version) (found []string) {
	appeared := map[string]map[string]int{}
	for object, versions := range clusters {
		counts, last := map[string]int{}, Absent
		for _, v := range versions {
			if v.Value != last {
				counts[v.Value]++
			}
			last = v.Value
		}
		appeared[object] = counts
		for _, value := range slices.Sorted(maps.Keys(counts)) {
			if value != Absent && counts[value] > 1 {
				found = append(found, fmt.Sprintf("%s: %q took effect %d times", object, value, counts[value]))
			}
		}
	}
	for _, o := range all {
		n := appeared[o.Object][o.Value]
		switch {
		case o.Verb == Write && o.Outcome == Done && n == 0:
			found = append(found, "done, but without effect in the cluster: "+o.String())
		case o.Verb == Write && o.Outcome == Failed && n > 0:
			found = append(found, "failed, but with an effect in the cluster: "+o.String())
		case o.Verb == Read && o.Outcome == Done && o.Value != Absent && n == 0:
			found = append(found, "read what the cluster never had: "+o.String())
		}
	}
	return found
}
