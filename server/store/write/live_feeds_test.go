package write_test

import (
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/databases"
)

// TestFeedsBecomeLiveTogether makes several feeds live by one batch, together with one that also gets a mark, one of a namespace, and one
// that fails.
func TestFeedsBecomeLiveTogether(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *store.Store{
		"SQLite":     func(t *testing.T) *store.Store { return storetest.Open(t, "sqlite:"+t.TempDir()+"/test.db") },
		"PostgreSQL": func(t *testing.T) *store.Store { return storetest.Open(t, databases.PostgreSQL(t)) },
		"MariaDB":    func(t *testing.T) *store.Store { return storetest.Open(t, databases.MariaDB(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			pods, services, roles := storetest.FeedOf(storetest.Pods), storetest.FeedOf(storetest.Services), storetest.FeedOf(storetest.Roles)
			deployments, oneNamespace := storetest.FeedOf(storetest.Deployments), vedette.Feed{Kind: storetest.ReplicaSets, Namespace: "default"}
			w, mark := storetest.NewWriter(t, s, "prod", pods, services, roles, deployments, oneNamespace), vedette.Mark("7")
			w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: pods, State: vedette.FeedFailing, Message: "no answer"}}})
			w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: pods, State: vedette.FeedLive}, {Feed: services, State: vedette.FeedLive},
				{Feed: roles, State: vedette.FeedLive, Mark: &mark}, {Feed: deployments, State: vedette.FeedDenied, Message: "forbidden"},
				{Feed: oneNamespace, State: vedette.FeedLive}}})
			for _, want := range []struct {
				feed    vedette.Feed
				state   vedette.FeedState
				mark    vedette.Mark
				message string
			}{{pods, vedette.FeedLive, "", ""}, {services, vedette.FeedLive, "", ""}, {roles, vedette.FeedLive, "7", ""},
				{deployments, vedette.FeedDenied, "", "forbidden"}, {oneNamespace, vedette.FeedLive, "", ""}} {
				got := storetest.FeedStatus(t, s, "prod", want.feed)
				if got.State != want.state || got.Mark != want.mark || got.Message != want.message {
					t.Errorf("%s: got %s, mark %q, %q, want %s, %q, %q", want.feed, got.State, got.Mark, got.Message, want.state, want.mark, want.message)
				}
			}
		})
	}
}

// TestBookmarksOfStoredMarksWriteNothing commits bookmarks of a feed, and counts the transactions.
func TestBookmarksOfStoredMarksWriteNothing(t *testing.T) {
	transactions := 0
	f := newFixtureWith(t, sqldb.Config{URL: "sqlite:" + t.TempDir() + "/test.db", OnTransaction: func(sqldb.TransactionResult, time.Duration) { transactions++ }})
	for _, tt := range []struct {
		name   string
		mark   vedette.Mark
		update commit.FeedUpdate
		want   int
	}{
		{"a new mark", "7", commit.FeedUpdate{}, 1}, {"the same mark", "7", commit.FeedUpdate{}, 0},
		{"the same mark with a state", "7", commit.FeedUpdate{State: vedette.FeedLive}, 1}, {"another mark", "8", commit.FeedUpdate{}, 1},
		{"an earlier mark", "7", commit.FeedUpdate{}, 1},
	} {
		before := transactions
		tt.update.Feed, tt.update.Mark = storetest.PodFeed, &tt.mark
		_, err := f.Commit(t.Context(), commit.Batch{Account: "prod", Term: f.Term, Feeds: []commit.FeedUpdate{tt.update}})
		f.Must(err)
		if got := transactions - before; got != tt.want || f.Feed().Mark != tt.mark {
			t.Errorf("%s: got %d transactions and mark %s, want %d and %s", tt.name, got, f.Feed().Mark, tt.want, tt.mark)
		}
	}
}
