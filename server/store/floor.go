package store

import (
	"cmp"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
)

// floor is a fact about one object that an operation found out before the
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
// earlier one. Such a floor is in doubt, and after the time that doubtFor says the
// snapshot is believed.
type floor struct {
	uid     string
	version uint64
	dispute
}

// tomb is another such fact: that the object with a uid has gone. No other object
// ever has that uid, so that whatever the feed tells of it is left out. It is kept
// for as long as a feed may well take to tell. To forget it too early costs no
// more than that the object shows once more until then; to leave something out
// costs nothing, unless etcd was restored, of which the same holds as of floors.
type tomb struct {
	key  vedette.Key
	made time.Time
	dispute
}

// dispute is what a feed said last of an object that is stored otherwise.
type dispute struct {
	word  *word     // nil where it said nothing
	doubt time.Time // since when it is a snapshot that said it; zero where it is not
}

// settled reports whether a snapshot's word has stood for long enough.
func (d dispute) settled(now time.Time) bool {
	return !d.doubt.IsZero() && now.Sub(d.doubt) >= doubtFor
}

// word is what a feed says of an object: how it is, or that it is not there.
type word struct{ object *vedette.Object }

const (
	doubtFor = 2 * time.Minute
	tombFor  = 10 * time.Minute
)

// versionNumber reads a resourceVersion. Since Kubernetes 1.35 it is part of the
// API that those of one resource are decimal numbers that grow (KEP-5504). An API
// server that has others is not concluded anything from.
func versionNumber(version string) (uint64, bool) {
	n, err := strconv.ParseUint(version, 10, 64)
	return n, err == nil
}

// reaches reports whether a version is known to be n or newer.
func reaches(version string, n uint64) bool {
	v, ok := versionNumber(version)
	return ok && v >= n
}

// before reports whether a version is known to be older than n.
func before(version string, n uint64) bool {
	v, ok := versionNumber(version)
	return ok && v < n
}

// admits reports whether what a feed tells at a version may be done. What comes
// without a version comes from within a snapshot, whose end decides on it.
func (f *floor) admits(version string) bool { return version != "" && !before(version, f.version) }

// passed reports whether a feed that is stored up to a mark tells nothing more
// that the floor would leave out.
func (f *floor) passed(mark string) bool { return f.doubt.IsZero() && reaches(mark, f.version) }

// digests are those under which a snapshot's index may have named what an
// operation wrote: Take voids the version when an agent tells objects otherwise.
func (f *floor) digests() []uint64 {
	return []uint64{vedette.Digest(f.uid, strconv.FormatUint(f.version, 10)), vedette.Digest(f.uid, "")}
}

// covers reports whether a feed tells an object.
func covers(feed vedette.Feed, key vedette.Key) bool {
	return feed.Kind == key.Kind && (feed.Namespace == "" || feed.Namespace == key.Namespace)
}

// listing is a feed's snapshot that is under way.
type listing struct {
	from  vedette.Mark // that the feed had before it
	begun bool         // the index is being read
	whole bool         // it has been
	last  indexRow     // that it holds so far
}

// beyond reports whether the index was read past an object's place, so that the
// snapshot does not know what is written there now.
func (l *listing) beyond(key vedette.Key) bool {
	switch {
	case l == nil || !l.begun:
		return false
	case l.whole:
		return true
	}
	return cmp.Or(cmp.Compare(key.Namespace, l.last.namespace), cmp.Compare(key.Name, l.last.name)) <= 0
}
