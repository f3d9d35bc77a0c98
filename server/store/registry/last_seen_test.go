package registry_test

import (
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// TestFreshnessOfOthersIsStored checks that an account which the database does not let change, for example because it is locked, does not
// keep the freshness of other accounts from being stored.
func TestFreshnessOfOthersIsStored(t *testing.T) {
	f, at := newFixture(t), time.Now().Add(-time.Hour).Truncate(time.Microsecond)
	terms, mark := map[vedette.AccountName]vedette.Term{}, vedette.Mark("7")
	for _, name := range []vedette.AccountName{"a", "b"} {
		_, err := f.Register(t.Context(), vedette.Account{Name: name, Cluster: vedette.Cluster{UID: string(name)}})
		f.Must(err)
		terms[name], err = f.Acquire(t.Context(), name, registry.CacherClaim{Agent: "x", Server: "s"})
		f.Must(err)
		_, err = f.Declare(t.Context(), name, terms[name], []commit.DeclaredFeed{{Feed: storetest.PodFeed,
			Resource: vedette.Resource{Kind: storetest.PodFeed.Kind, Version: "v1", Plural: "pods", Namespaced: true}}}, nil)
		f.Must(err)
		_, err = f.Commit(t.Context(), commit.Batch{Account: name, Term: terms[name],
			Feeds: []commit.FeedUpdate{{Feed: storetest.PodFeed, Mark: &mark, State: vedette.FeedFailing}}})
		f.Must(err)
	}
	_, err := f.ExecWrite(t.Context(), sqldb.Named("test", `CREATE TRIGGER locked BEFORE UPDATE ON feeds
		WHEN NEW.account_id = (SELECT id FROM accounts WHERE name = 'a') BEGIN SELECT RAISE(ABORT, 'locked'); END`))
	f.Must(err)
	if err := f.RecordLastSeen(t.Context(), []registry.LastSeen{{Account: "a", Term: terms["a"], Complete: at}, {Account: "b", Term: terms["b"], Complete: at}}); err == nil {
		t.Error("got no error about the account that is locked")
	}
	feeds, err := f.Marks(t.Context(), "b")
	if err != nil || len(feeds) != 1 || !feeds[0].LastSeen.Equal(at) {
		t.Errorf("got %+v, %v, want that the other account was complete at %v", feeds, err, at)
	}
}
