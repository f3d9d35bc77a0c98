package commit

import (
	"time"

	"github.com/vedette-io/vedette"
)

// Batch is what one commit writes of one account: the net result of a run of changes, with the
// marks that the feeds reach. Chunks of it may be stored before the marks, but never the marks
// before the changes that they cover.
type Batch struct {
	Account vedette.AccountName
	Term    vedette.Term // the error is ErrTerm if a later term is stored

	Upserts []vedette.Object // at most one per key; the key must not be in Deletes
	Deletes []Deletion
	Drops   []Drop
	Feeds   []FeedUpdate // at most one per feed
}

// IsEmpty reports whether a batch changes nothing.
func (b *Batch) IsEmpty() bool { return len(b.Upserts)+len(b.Deletes)+len(b.Drops)+len(b.Feeds) == 0 }

// Deletion means that an object is no longer in the cluster.
type Deletion struct {
	vedette.Key
	Version string // resourceVersion of the deletion; empty if it is found by a snapshot
}

// Drop names rows of a feed that a snapshot did not find in the cluster, by their digests. A row
// that was rewritten since then has another digest and stays.
type Drop struct {
	Feed    vedette.Feed
	Digests []uint64
}

// FeedUpdate changes the row of a feed.
type FeedUpdate struct {
	Feed vedette.Feed
	Mark *vedette.Mark // nil keeps the stored one
	// IsRemembered means that the agent continues from Mark also if the one before is stored, because nothing has changed in between. So Mark
	// is kept in memory until somebody else may need it.
	IsRemembered bool
	State        vedette.FeedState
	Message      string    // why the feed is failing or denied, for users; stored with State
	Note         *string   // replaces Message in any state; nil if there is none
	Synced       time.Time // when the last snapshot ended; zero keeps the stored time
	// Verified is when the feed was found to equal its cluster; zero keeps the stored time.
	Verified time.Time
	Drift    int64 // how many more objects were found to differ from the cluster
	// SnapshotMark is the mark of a snapshot that ends with this batch; empty if none
	// ends. Mark may be newer, if changes after the snapshot are in the same batch.
	SnapshotMark vedette.Mark
}

// Change is what a commit did to one object.
type Change struct {
	Account vedette.AccountName
	Key     vedette.Key
	Type    ChangeType
	Version string // resourceVersion; empty for a deletion
}

// ChangeType is what happened to an object. The values are part of the API.
type ChangeType string

// The types of a Change.
const (
	Added    ChangeType = "added"
	Modified ChangeType = "modified"
	Deleted  ChangeType = "deleted"
)

// DeclaredFeed is a feed that an agent reports, and its kind as the API server serves it.
type DeclaredFeed struct {
	Feed     vedette.Feed
	Resource vedette.Resource
}

// StoredObject is what a verification compares of an object.
type StoredObject struct {
	Digest          uint64
	Namespace, Name string
}

// ErrNoFeed means that the feed of a change was not declared.
var ErrNoFeed = vedette.Errorf(vedette.Invalid, "the account has no such feed")

// ErrRewound means that a cluster reports an older state than before,
// for example because etcd was restored from a backup. The cluster may use a resourceVersion
// again for other content, so the feed loses its mark, and its next snapshot reports all of
// its objects.
var ErrRewound = vedette.Errorf(vedette.Conflict, "the cluster has gone back to an earlier state, as when etcd is restored from a backup")

// IsNotable reports whether an update changes what readers of a feed's state see: they know
// already that a feed is live and has no message. Marks and numbers of objects change with every
// commit and do not count.
func (u FeedUpdate) IsNotable(wasLive bool) bool {
	return u.Note != nil || u.State != "" && (u.State != vedette.FeedLive || u.Message != "" || !wasLive)
}
