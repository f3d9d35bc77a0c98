package read

import (
	"time"

	"github.com/vedette-io/vedette"
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

// Query selects objects. A field that is empty selects everything; all other fields must match.
type Query struct {
	Accounts    []vedette.AccountName
	Kinds       []vedette.Kind
	Namespace   string
	Name        string
	NamePrefix  string // of the names
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
