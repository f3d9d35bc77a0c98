package verify

import "slices"

// Suspects are the buckets of a feed that may have drift: those whose sums have differed in each comparison, and
// that were not examined. In a feed whose objects change all the time, many sums differ because a list and the
// store are not of the same moment, but each time others. So comparing again leaves few that are worth an
// examination. The zero value suspects all buckets.
type Suspects struct {
	known   bool // buckets are all that are suspect
	bits    int
	buckets []uint32 // sorted
}

// Compare notes which buckets differ in a comparison, and returns those that are suspect. If there are more or
// fewer buckets than before, because the feed has grown or shrunk, it begins anew.
func (s *Suspects) Compare(bits int, differing []uint32) []uint32 {
	differing = slices.Compact(slices.Sorted(slices.Values(differing)))
	if s.known && s.bits == bits {
		s.buckets = slices.DeleteFunc(s.buckets, func(bucket uint32) bool {
			_, differs := slices.BinarySearch(differing, bucket)
			return !differs
		})
	} else {
		s.buckets = differing
	}
	s.known, s.bits = true, bits
	return s.buckets
}

// Examined notes that buckets were examined and have no drift. It reports whether none is suspect anymore.
func (s *Suspects) Examined(buckets []uint32) (done bool) {
	s.buckets = slices.DeleteFunc(s.buckets, func(bucket uint32) bool { return slices.Contains(buckets, bucket) })
	return len(s.buckets) == 0
}
