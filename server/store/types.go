package store

import (
	"time"

	"github.com/vedette-io/vedette"
)

// Batch is what one transaction writes of one account: the net result of a run
// of changes, with the marks that it brings the feeds to. Either all of it is
// stored or none.
type Batch struct {
	Account vedette.AccountName
	Term    vedette.Term // refused with ErrTerm where a later term is stored
	Source  string       // who sent it: batches of different sources take turns, so that one that sends many delays its own

	Upserts []vedette.Object // at most one per key, and then no delete of it
	Deletes []Deletion
	Drops   []Drop
	Feeds   []FeedUpdate // at most one per feed
}

// Deletion says that an object is no longer in the cluster.
type Deletion struct {
	vedette.Key
	Version string // resourceVersion at which it went; empty where a snapshot told without one
}

// Drop names rows of a feed that a snapshot did not find in the cluster, by
// their digests. A row that was rewritten since has another digest and stays.
type Drop struct {
	Feed    vedette.Feed
	Digests []uint64
}

// FeedUpdate is the change of one feed's own row.
type FeedUpdate struct {
	Feed    vedette.Feed
	Mark    *vedette.Mark // nil leaves it as it is
	State   vedette.FeedState
	Message string    // why the feed is failing or denied, for people; goes with the state
	Note    *string   // the message whatever the state is; nil where there is none of its own
	Synced  time.Time // when the last snapshot ended; zero leaves it as it is
	// SnapshotMark is the mark of a snapshot that ends with this batch; empty where none
	// does. The feed may have gone on since, so that Mark is another.
	SnapshotMark vedette.Mark
}

// Change tells what a batch did to one object, after its commit.
type Change struct {
	Account vedette.AccountName
	Key     vedette.Key
	Type    ChangeType
	Version string // resourceVersion; empty for a deletion
}

// ChangeType is part of the API.
type ChangeType string

// The types of a Change.
const (
	Added    ChangeType = "added"
	Modified ChangeType = "modified"
	Deleted  ChangeType = "deleted"
)

// FeedStatus is a feed's row.
type FeedStatus struct {
	Account  vedette.AccountName
	Feed     vedette.Feed
	Resource vedette.Resource // as the agent last declared it
	Mark     vedette.Mark
	State    vedette.FeedState
	Message  string
	Objects  int64     // rows of the feed
	Synced   time.Time // when the last snapshot ended; zero before the first
	LastSeen time.Time // up to when the feed was last known to be complete, as far as it is stored
}

// AccountRow is an account with what the server knows of its life.
type AccountRow struct {
	vedette.Account
	Term       vedette.Term
	Holder     vedette.AgentID  // the cacher; empty where none is connected
	Server     vedette.ServerID // that the holder is connected to
	Registered time.Time
	LastSeen   time.Time // when an agent last spoke for it
	Orphaned   time.Time // since when no agent has been connected; zero while one is
	// PermittedBy is the agent that the account's permissions came from; empty where
	// none has become the account's cacher yet.
	PermittedBy vedette.AgentID
}

// Query selects objects. Fields that are empty select everything; several
// fields must all hold.
type Query struct {
	Accounts    []vedette.AccountName
	Kinds       []vedette.Kind
	Namespace   string
	Name        string
	Application string
	Selector    string // a label selector as kubectl takes it
	Limit       int    // 1 to 5000; 0 means 500
	After       string // cursor of the previous page
	Bodies      bool   // read bodies too
	SkipTotal   bool   // leave out the count, which costs as much as the rows it counts
	// Bytes bounds what the rows of a page hold together, uncompressed: the page ends
	// before the row that would be too much, and its cursor goes on there. A page has
	// one row at least, however large. Zero means no bound.
	Bytes int64
}

// Page is a part of the objects that a query selects, in the order of account,
// kind, namespace and name.
type Page struct {
	Items []Row
	Total int64  // of all pages; -1 where the query left it out
	Next  string // cursor of the next page; empty on the last
}

// Row is a stored object. Body is nil unless the query asked for it.
type Row struct {
	vedette.Object
	Account  vedette.AccountName
	Moniker  vedette.Moniker
	Resource vedette.Resource // of the kind, as the account's agent declared it
	Stored   time.Time        // when this version was written
}
