package store

import (
	"cmp"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
)

// versionFloor is a fact about one object that an operation found out before the
// object's feed told it: that the cluster had it at a version. What the feed
// tells from before that is left out.
//
// A floor must not outlive its use: what it leaves out would be missing for ever
// if the feed never told anything newer. That it does is certain as long as the
// feed has yet to pass the version, and a feed says by its marks what it has
// passed. So marks end floors, and no clock does, but for one case: a snapshot
// that ends before the floor's version, because its list began before the
// operation wrote. The watch that follows tells the version, unless there is none
// any more: a cluster whose etcd was restored from a backup counts on from an
// earlier one. Such a floor is in doubt, and after the time that claimTimeout says the
// snapshot is believed.
type versionFloor struct {
	uid     string
	version uint64
	conflict
}

// tombstone is another such fact: that the object with a uid has gone. No other object
// ever has that uid, so that whatever the feed tells of it is left out. It is kept
// for as long as a feed may well take to tell. To forget it too early costs no
// more than that the object shows once more until then; to leave something out
// costs nothing, unless etcd was restored, of which the same holds as of floors.
type tombstone struct {
	key       vedette.Key
	createdAt time.Time
	conflict
}

// conflict is what a feed said last of an object that is stored otherwise.
type conflict struct {
	claim *claim    // nil where it said nothing
	since time.Time // since when it is a snapshot that said it; zero where it is not
}

// expired reports whether a snapshot's word has stood for long enough.
func (d conflict) expired(now time.Time) bool {
	return !d.since.IsZero() && now.Sub(d.since) >= claimTimeout
}

// claim is what a feed says of an object: how it is, or that it is not there.
type claim struct{ object *vedette.Object }

const (
	claimTimeout = 2 * time.Minute
	tombstoneTTL = 10 * time.Minute
)

// parseVersion reads a resourceVersion. Since Kubernetes 1.35 it is part of the
// API that those of one resource are decimal numbers that grow (KEP-5504). An API
// server that has others is not concluded anything from.
func parseVersion(version string) (uint64, bool) {
	n, err := strconv.ParseUint(version, 10, 64)
	return n, err == nil
}

// atLeast reports whether a version is known to be n or newer.
func atLeast(version string, n uint64) bool {
	v, ok := parseVersion(version)
	return ok && v >= n
}

// olderThan reports whether a version is known to be older than n.
func olderThan(version string, n uint64) bool {
	v, ok := parseVersion(version)
	return ok && v < n
}

// allows reports whether what a feed tells at a version may be done. What comes
// without a version comes from within a snapshot, whose end decides on it.
func (f *versionFloor) allows(version string) bool {
	return version != "" && !olderThan(version, f.version)
}

// passedBy reports whether a feed that is stored up to a mark tells nothing more
// that the floor would leave out.
func (f *versionFloor) passedBy(mark string) bool {
	return f.since.IsZero() && atLeast(mark, f.version)
}

// digests are those under which a snapshot's index may have named what an
// operation wrote: Take voids the version when an agent tells objects otherwise.
func (f *versionFloor) digests() []uint64 {
	return []uint64{vedette.Digest(f.uid, strconv.FormatUint(f.version, 10)), vedette.Digest(f.uid, "")}
}

// covers reports whether a feed tells an object.
func covers(feed vedette.Feed, key vedette.Key) bool {
	return feed.Kind == key.Kind && (feed.Namespace == "" || feed.Namespace == key.Namespace)
}

// feedSnapshot is a feed's snapshot that is under way.
type feedSnapshot struct {
	previousMark vedette.Mark // that the feed had before it
	indexStarted bool         // the index is being read
	indexDone    bool         // it has been
	lastIndexed  indexRow     // that it holds so far
}

// indexPassed reports whether the index was read past an object's place, so that the
// snapshot does not know what is written there now.
func (s *feedSnapshot) indexPassed(key vedette.Key) bool {
	switch {
	case s == nil || !s.indexStarted:
		return false
	case s.indexDone:
		return true
	}
	return cmp.Or(cmp.Compare(key.Namespace, s.lastIndexed.namespace), cmp.Compare(key.Name, s.lastIndexed.name)) <= 0
}
