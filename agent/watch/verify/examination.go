package verify

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/vedette-io/vedette"
)

const (
	// maxBuckets is how many buckets are examined at once. If more differ, others have their turn
	// in the next verification, unless the feed is read anew because of these.
	maxBuckets = 32
	// maxObjects bounds the memory of an examination: 32 buckets of a feed with 250,000 objects, which may have
	// twice as many as others, or fewer buckets of a larger one.
	maxObjects = 4096
	// maxNames is how many missing objects are remembered by name until it is known which ones are
	// drift.
	maxNames = 16
	// maxNamed is how many left over objects the server is asked to name, most of which have left
	// meanwhile.
	maxNamed = 64
	// maxExamples is how many objects a drift names.
	maxExamples = 3
)

// ErrTooManyObjects reports that an examination would need too much memory.
var ErrTooManyObjects = errors.New("the buckets of the digests that differ have too many objects")

// Examination finds drift in some buckets of a feed, in two rounds. In each, the caller adds the
// objects of a list, and then compares them with what the server answers.
type Examination struct {
	bits     int
	buckets  []uint32 // sorted
	listed   map[uint64]uint64
	second   bool
	missing  map[uint64]uint64 // candidates: digest to name
	leftOver map[uint64]uint64
	names    map[uint64]string // of missing objects, at most maxNames
}

// NewExamination begins an examination of some of the buckets that differ, of a feed with n objects.
func NewExamination(bits, n int, differing []uint32) *Examination {
	buckets := slices.Clone(differing)
	if limit := bucketLimit(bits, n); len(buckets) > limit {
		rand.Shuffle(len(buckets), func(i, j int) { buckets[i], buckets[j] = buckets[j], buckets[i] })
		buckets = buckets[:limit]
	}
	slices.Sort(buckets)
	return &Examination{bits: bits, buckets: buckets, listed: map[uint64]uint64{}, names: map[uint64]string{}}
}

// bucketLimit returns how many buckets of a feed can be examined at once.
func bucketLimit(bits, n int) int {
	perBucket := n>>bits + 1
	return min(max(maxObjects/2/perBucket, 1), maxBuckets)
}

// CanExamine reports whether so many buckets of a feed with n objects can be examined at once.
func CanExamine(bits, n, buckets int) bool { return buckets <= bucketLimit(bits, n) }

// Wants reports whether an object with this digest is in one of the buckets.
func (x *Examination) Wants(digest uint64) bool {
	_, found := slices.BinarySearch(x.buckets, uint32(vedette.Bucket(digest, x.bits)))
	return found
}

// Add adds an object of a list.
func (x *Examination) Add(digest uint64, namespace, name string) error {
	if !x.Wants(digest) {
		return nil
	}
	if len(x.listed) >= maxObjects {
		return ErrTooManyObjects
	}
	x.listed[digest] = vedette.HashName(namespace, name)
	if _, isCandidate := x.missing[digest]; isCandidate && len(x.names) < maxNames {
		x.names[digest] = vedette.Key{Namespace: namespace, Name: name}.Path()
	}
	return nil
}

// Request asks for the objects of the buckets.
func (x *Examination) Request() Request {
	r := Request{Bits: x.bits, Buckets: x.buckets}
	for digest := range x.leftOver {
		if _, exists := x.listed[digest]; !exists && len(r.Named) < maxNamed {
			r.Named = append(r.Named, digest)
		}
	}
	return r
}

// Compare ends a round: the list is compared with what the server stores. It reports whether another
// round may find drift.
func (x *Examination) Compare(stored []Object) (more bool, err error) {
	if len(stored) > maxObjects {
		return false, ErrTooManyObjects
	}
	has := make(map[uint64]uint64, len(stored))
	for _, o := range stored {
		if x.Wants(o.Digest) {
			has[o.Digest] = o.Name
		}
	}
	missing, leftOver := subtract(x.listed, has), subtract(has, x.listed)
	if x.second {
		missing, leftOver = intersect(missing, x.missing), intersect(leftOver, x.leftOver)
	}
	x.missing = missing
	x.leftOver = leftOver
	x.listed = map[uint64]uint64{}
	x.second = true
	return len(missing)+len(leftOver) > 0, nil
}

func subtract(a, b map[uint64]uint64) map[uint64]uint64 {
	rest := map[uint64]uint64{}
	for digest, name := range a {
		if _, found := b[digest]; !found {
			rest[digest] = name
		}
	}
	return rest
}

func intersect(a, b map[uint64]uint64) map[uint64]uint64 {
	both := map[uint64]uint64{}
	for digest, name := range a {
		if _, found := b[digest]; found {
			both[digest] = name
		}
	}
	return both
}

// Drift is what two rounds have found. leftOverNames is from the answer of the second one.
func (x *Examination) Drift(leftOverNames []string) Drift {
	d := Drift{missing: x.missing, leftOver: x.leftOver}
	for digest := range x.missing {
		if name := x.names[digest]; name != "" {
			d.Examples = append(d.Examples, name)
		}
	}
	for _, name := range leftOverNames {
		if !slices.Contains(d.Examples, name) {
			d.Examples = append(d.Examples, name)
		}
	}
	slices.Sort(d.Examples)
	d.Examples = d.Examples[:min(len(d.Examples), maxExamples)]
	return d
}

// Drift is how the store differs from a cluster.
type Drift struct {
	missing, leftOver map[uint64]uint64
	Examples          []string // names of some of the objects
}

// IsEmpty reports whether the feed equals its cluster.
func (d *Drift) IsEmpty() bool { return len(d.missing)+len(d.leftOver) == 0 }

// Without returns the drift without objects that were missing before the feed was read anew, and still
// are: they cannot be stored, or cannot be read. It also returns the digests of these.
func (d *Drift) Without(before *Drift) (rest Drift, unstorable []uint64) {
	rest = *d
	rest.missing = subtract(d.missing, before.missing)
	for digest := range d.missing {
		if _, remained := rest.missing[digest]; !remained {
			unstorable = append(unstorable, digest)
		}
	}
	return rest, unstorable
}

// TakeLeftOver removes left over objects whose digests are given, and returns their digests.
func (d *Drift) TakeLeftOver(digests map[uint64]bool) (taken []uint64) {
	for digest := range d.leftOver {
		if digests[digest] {
			taken = append(taken, digest)
			delete(d.leftOver, digest)
		}
	}
	return taken
}

// Remove removes missing objects.
func (d *Drift) Remove(digests []uint64) {
	for _, digest := range digests {
		delete(d.missing, digest)
	}
}

// Count counts the objects of a drift.
func (d *Drift) Count() Count {
	stale := map[uint64]bool{}
	for _, name := range d.leftOver {
		stale[name] = true
	}
	c := Count{}
	for _, name := range d.missing {
		if stale[name] {
			c.Changed++
		}
	}
	c.Missing, c.LeftOver = len(d.missing)-c.Changed, len(d.leftOver)-c.Changed
	return c
}

// Count is how many objects differ. Those that are stored in another version are changed.
type Count struct{ Missing, LeftOver, Changed int }

// Add adds the objects of another drift.
func (c *Count) Add(other Count) {
	c.Missing += other.Missing
	c.LeftOver += other.LeftOver
	c.Changed += other.Changed
}

// Total is the number of all objects that differ.
func (c Count) Total() int { return c.Missing + c.LeftOver + c.Changed }
