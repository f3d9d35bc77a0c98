package vedette

// Feed identifies one ordered sequence of changes: one kind of one account or, if the
// account is restricted to namespaces, that kind in one namespace. resourceVersions are
// comparable only within a feed.
type Feed struct {
	Kind      Kind
	Namespace string // empty for all namespaces and for cluster-scoped kinds
}

// String returns "Pod" or "Pod/default", for logs and messages.
func (f Feed) String() string {
	if f.Namespace == "" {
		return f.Kind.String()
	}
	return f.Kind.String() + "/" + f.Namespace
}

// FeedState is the progress of a feed. The values are part of the API.
type FeedState string

// The states of a feed:
//
//	pending ──> syncing ──> live ──> syncing (the API server forgot the mark)
//	   │            │         │
//	   └────────────┴─────────┴──> failing | denied ──> syncing | live
//
// A feed that is not live may be behind its cluster by any amount of time.
const (
	FeedPending FeedState = "pending" // selected, but nothing has been read yet
	FeedSyncing FeedState = "syncing" // a snapshot is being read
	FeedLive    FeedState = "live"    // changes are streamed as they happen
	FeedFailing FeedState = "failing" // the API server does not answer; retried
	FeedDenied  FeedState = "denied"  // RBAC forbids list or watch; retried at long intervals
)

// FeedStates are all states of a feed.
var FeedStates = []FeedState{FeedPending, FeedSyncing, FeedLive, FeedFailing, FeedDenied}
