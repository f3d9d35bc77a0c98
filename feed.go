package vedette

// Feed is one ordered run of changes: one kind of one account and, where the
// account is restricted to namespaces, one namespace of it. resourceVersions
// are comparable within a feed and nowhere else.
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

// FeedState says what a feed is doing. The values are part of the API.
type FeedState string

// The states of a feed:
//
//	pending ──> syncing ──> live ──> syncing (the API server forgot the mark)
//	   │            │         │
//	   └────────────┴─────────┴──> failing | denied ──> syncing | live
//
// A feed in any state but live may be behind its cluster without bound.
const (
	FeedPending FeedState = "pending" // wanted, and nothing is known of it yet
	FeedSyncing FeedState = "syncing" // a snapshot is under way
	FeedLive    FeedState = "live"    // every change is streamed as it happens
	FeedFailing FeedState = "failing" // the API server does not answer; it is tried again
	FeedDenied  FeedState = "denied"  // RBAC forbids list or watch; it is tried again, rarely
)
