package history

import (
	"fmt"
	"time"
)

// Version is a state that an object had in its cluster.
type Version struct {
	UID     string
	Version uint64 // resourceVersion; of a deletion, that of the deletion
	Value   string // Absent if it was deleted
	At      time.Duration
	// IsRestored says that the object became as it was before, because its cluster was restored from a backup. All versions in
	// between are undone.
	IsRestored bool
}

// Effects is the result of CheckEffects.
type Effects struct {
	Violations []string
	// Repeated are operations that took effect again before they were answered, once for each time. Operations that can be repeated
	// are given to the next agent if the first one, or its server, falls silent.
	Repeated []Operation
}

// lateness is how late the record of a version may be.
const lateness = 2 * time.Second

// CheckEffects compares operations with all versions that their objects had in the clusters, in their order: each write that is
// done has taken effect, none that failed has, none has after it was answered or after its deadline, and nobody has read what
// never was. Each write belongs to one operation.
func CheckEffects(all []Operation, clusters map[string][]Version) (result Effects) {
	writers := map[[2]string]Operation{}
	for _, o := range all {
		if o.Verb == Write {
			writers[[2]string{o.Object, o.Value}] = o
		}
	}
	counts := map[[2]string]int{}
	bad := func(format string, args ...any) {
		result.Violations = append(result.Violations, fmt.Sprintf(format, args...))
	}
	for object, versions := range clusters {
		last := Absent
		for _, v := range versions {
			if v.IsRestored {
				last = v.Value
				continue
			}
			if v.Value == last || v.Value == Absent {
				last = v.Value
				continue
			}
			last = v.Value
			key := [2]string{object, v.Value}
			counts[key]++
			o, isKnown := writers[key]
			end := o.Latest
			if o.Outcome != Unknown {
				end = o.Return
			}
			switch {
			case isKnown && end != 0 && v.At > end+lateness:
				bad("an effect at %.3fs, after its end: %v", v.At.Seconds(), o)
			case counts[key] > 1 && !isKnown:
				bad("%s: %q took effect %d times, and no operation has written it", object, v.Value, counts[key])
			case counts[key] > 1:
				result.Repeated = append(result.Repeated, o)
			}
		}
	}
	for _, o := range all {
		n := counts[[2]string{o.Object, o.Value}]
		switch {
		case o.Verb == Write && o.Outcome == Done && n == 0:
			bad("done, but without effect in the cluster: %v", o)
		case o.Verb == Write && o.Outcome == Failed && n > 0:
			bad("failed, but with an effect in the cluster: %v", o)
		case o.Verb == Read && o.Outcome == Done && o.Value != Absent && n == 0:
			bad("read what the cluster never had: %v", o)
		}
	}
	return result
}
