package write_test

import (
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
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
