package writethrough

import (
	"cmp"
	"math"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
)

// floor says that the cluster had an object at a version, which an operation found out before
// the object's feed reported it. Older changes from the feed are left out.
//
// A floor must not outlive its use: an object whose newer versions are never reported would stay
// as it is forever. As long as the feed has not passed the floor's version, it is certain to report
// that version or a newer one, and its marks say what it has passed. So marks end
// floors, and time does not, with one exception: a snapshot ends at a version before the
// floor's, because it was listed before the operation wrote. Usually the watch that follows
// reports the version. It never does if etcd was restored from a backup, because then the
// cluster counts on from an earlier version. Such a floor diverges, and the snapshot wins
// after divergenceTimeout.
//
// The floor of an absence says that nothing of the name is left from before its version. It does no harm, and lasts for
// TombstoneTTL at most, because the feed need not report anything about the name.
type floor struct {
	uid         string
	version     uint64
	absentSince time.Time // when an absence was recorded; zero for an object
	divergence
}

func (f *floor) isAbsence() bool { return !f.absentSince.IsZero() }

// tombstone says that the object with a uid is gone. The API server never uses a uid again,
// so every change of that uid is left out. A tombstone is kept for as long as a feed may be
// behind: if it is dropped too early, the object appears until the feed reports its deletion. To
// leave out a change does no harm, except after etcd was restored, as with floors.
type tombstone struct {
	key       vedette.Key
	createdAt time.Time
	divergence
}

// divergence is what a feed reported last about an object that is stored differently.
type divergence struct {
	reported *reported // nil if the feed reported nothing
	since    time.Time // when a snapshot that reported it ended; zero if none did
}

// isExpired reports whether a divergence has lasted long enough for the snapshot to win.
func (c divergence) isExpired(now time.Time) bool {
	return !c.since.IsZero() && now.Sub(c.since) >= divergenceTimeout
}

// reported is a feed's version of an object; nil if the feed says that there is no object.
type reported struct{ object *vedette.Object }

// TombstoneTTL is for how long an object that an operation deleted is left out.
const TombstoneTTL = 10 * time.Minute

const divergenceTimeout = 2 * time.Minute

// parseVersion parses a resourceVersion. Since Kubernetes 1.35 the API guarantees that those
// of one resource are increasing decimal numbers (KEP-5504). Other versions cannot be compared.
func parseVersion(version string) (uint64, bool) {
	n, err := strconv.ParseUint(version, 10, 64)
	return n, err == nil
}

// IsNewer reports whether a version is known to be newer than a mark.
func IsNewer(version string, mark vedette.Mark) bool {
	n, ok := parseVersion(version)
	return ok && isOlderThan(string(mark), n)
}

// HasReached reports whether a mark or a version is known to be version or newer.
func HasReached(mark, version string) bool {
	n, ok := parseVersion(version)
	return mark != "" && mark == version || ok && isAtLeast(mark, n)
}

// isAtLeast reports whether a version is known to be n or newer.
func isAtLeast(version string, n uint64) bool {
	v, ok := parseVersion(version)
	return ok && v >= n
}

// isOlderThan reports whether a version is known to be older than n.
func isOlderThan(version string, n uint64) bool {
	v, ok := parseVersion(version)
	return ok && v < n
}

// allows reports whether to store a change from a feed. A change without a version belongs
// to a snapshot, whose end decides about it.
func (f *floor) allows(version string) bool {
	return version != "" && !isOlderThan(version, f.version)
}

// isPassedBy reports whether a feed at that mark reports nothing older than the floor any
// more.
func (f *floor) isPassedBy(mark string) bool {
	return f.since.IsZero() && isAtLeast(mark, f.version)
}

// digests returns the digests under which a snapshot's index may contain what the operation
// wrote. The version is empty if an agent with another shape has taken the account.
func (f *floor) digests(key vedette.Key) (digests []uint64) {
	for _, version := range []string{strconv.FormatUint(f.version, 10), ""} {
		digests = append(digests, vedette.Digest(key.Namespace, key.Name, f.uid, version))
		if f.uid == "" {
			digests = append(digests, vedette.DigestWithoutName(f.uid, version))
		}
	}
	return digests
}

// covers reports whether a feed reports an object.
func covers(feed vedette.Feed, key vedette.Key) bool {
	return feed.Kind == key.Kind && (feed.Namespace == "" || feed.Namespace == key.Namespace)
}

// snapshot is a feed's snapshot in progress.
type snapshot struct {
	previousMark   vedette.Mark // of the feed, before the snapshot
	indexStarted   bool
	indexDone      bool
	indexedThrough vedette.Key
}

// isIndexed reports whether the index was read beyond a key, so that the snapshot does not
// know what is written there now.
func (s *snapshot) isIndexed(key vedette.Key) bool {
	switch {
	case s == nil || !s.indexStarted:
		return false
	case s.indexDone:
		return true
	}
	return cmp.Or(cmp.Compare(key.Namespace, s.indexedThrough.Namespace), cmp.Compare(key.Name, s.indexedThrough.Name)) <= 0
}

// objectState is everything that decides about an operation's result.
type objectState struct {
	Stored
	key      vedette.Key
	snapshot *snapshot // of the object's feed; nil if there is none
	floor    *floor    // nil if there is none
	deleted  bool      // whether the operation's object has a tombstone
}

// decideWrite reports whether to store an object, and returns its new floor; nil for none.
func (state *objectState) decideWrite(o *vedette.Object) (bool, *floor) {
	version, ok := parseVersion(o.ResourceVersion)
	switch {
	case !ok || state.deleted:
		return false, nil
	case state.Exists && state.Version != "" && !isOlderThan(state.Version, version):
		return false, nil
	case !state.Exists && state.hasFeedPassed(version):
		return false, nil
	case state.floor != nil && state.floor.isAbsence() && version < state.floor.version:
		return false, nil
	case isAtLeast(string(state.Mark), version):
		return true, nil // the feed reports only newer versions from now on
	}
	newFloor := floor{uid: o.UID, version: version}
	if state.floor != nil {
		newFloor.version, newFloor.reported = max(version, state.floor.version), state.floor.reported
	}
	if state.snapshot.isIndexed(state.key) && newFloor.reported == nil {
		// The snapshot's drops cannot name an object that is not in the index. If the snapshot
		// does not report the object either, the object was not in the cluster.
		newFloor.reported = &reported{}
	}
	return true, &newFloor
}

// decideAbsence reports whether to remove what is stored because nothing is left of the object from a version or older ones, and
// returns the new floor; nil for none. A feed that has passed the version may not have reported the absence, if a newer change of
// the object has replaced it; but it reports nothing older any more.
func (state *objectState) decideAbsence(absentAt string, now time.Time) (bool, *floor) {
	version, ok := parseVersion(absentAt)
	switch {
	case !ok || version == math.MaxUint64:
		return false, nil
	case state.Exists && !isOlderThan(state.Version, version+1): // newer, or it cannot be compared
		return false, nil
	case state.floor != nil && state.floor.version > version, state.Mark != "" && !isOlderThan(string(state.Mark), version):
		return state.Exists, nil
	}
	newFloor := floor{version: version + 1, absentSince: now}
	if state.floor != nil {
		newFloor.reported = state.floor.reported
	}
	return state.Exists, &newFloor
}

// hasFeedPassed reports whether the feed may already have reported the deletion of an object of
// that version.
func (state *objectState) hasFeedPassed(version uint64) bool {
	mark := cmp.Or(state.Mark, state.PreviousMark)
	return mark != "" && !isOlderThan(string(mark), version)
}
