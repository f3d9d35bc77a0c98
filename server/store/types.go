package store

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
	Feed    vedette.Feed
	Mark    *vedette.Mark // nil keeps the stored one
	State   vedette.FeedState
	Message string    // why the feed is failing or denied, for users; stored with State
	Note    *string   // replaces Message in any state; nil if there is none
	Synced  time.Time // when the last snapshot ended; zero keeps the stored time
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

// FeedStatus is the stored row of a feed.
type FeedStatus struct {
	Account  vedette.AccountName
	Feed     vedette.Feed
	Resource vedette.Resource // as the agent declared it last
	Mark     vedette.Mark
	State    vedette.FeedState
	Message  string
	Objects  int64     // number of stored objects
	Synced   time.Time // when the last snapshot ended; zero before the first
	Verified time.Time // when it was last found to equal its cluster; zero before the first time
	Drift    int64     // how many objects were found to differ from the cluster, all together
	LastSeen time.Time // the last time at which the store was known to have all changes of the feed
}

// AccountRow is a stored account.
type AccountRow struct {
	vedette.Account
	Term       vedette.Term
	Holder     vedette.AgentID  // the cacher; empty if none is connected
	Server     vedette.ServerID // to which the holder is connected
	Registered time.Time
	LastSeen   time.Time // when an agent was last connected for it
	Orphaned   time.Time // since when no agent is connected; zero while one is
	// PermittedBy is the agent that set the account's permissions; empty until the account
	// has its first cacher.
	PermittedBy vedette.AgentID
	FirstSync
}

// FirstSync says how far the first synchronization of an account has come.
type FirstSync struct {
	// Settled is since when no feed waits for its first snapshot: each is stored, or the cluster does not let the
	// agent read it. Zero until then.
	Settled time.Time
	// Complete is since when all feeds by which Spinnaker decides are stored. Zero until then.
	Complete time.Time
}

// Query selects objects. A field that is empty selects everything; all other fields must match.
type Query struct {
	Accounts    []vedette.AccountName
	Kinds       []vedette.Kind
	Namespace   string
	Name        string
	Application string
	Selector    string // a label selector in the syntax of kubectl
	Limit       int    // 1 to 5000; 0 means 500
	After       string // cursor of the previous page
	Bodies      bool   // read bodies too
	SkipTotal   bool   // do not count all matches, which reads as many rows as it counts
	// Bytes limits the uncompressed size of all rows of a page. The page ends before the row
	// that exceeds it, and the next page begins with that row. A page has at least
	// one row. Zero means no limit.
	Bytes int64
}

// Page is one page of the objects that a query selects, ordered by account, kind, namespace and
// name.
type Page struct {
	Items []Row
	// Total is the number of objects on all pages; -1 if the query has SkipTotal. For queries that
	// restrict only accounts and kinds, it may be some seconds old if these have thousands of feeds.
	Total int64
	Next  string // cursor of the next page; empty on the last
}

// Row is a stored object. Body is nil unless the query has Bodies.
type Row struct {
	vedette.Object
	Account  vedette.AccountName
	Moniker  vedette.Moniker
	Resource vedette.Resource // the object's kind, as the account's agent declared it
	Stored   time.Time        // when this version was written
}
