package server

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/metricset/metricstest"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/metrics"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// TestMetricsByAccount checks that the first accounts by name have metrics of their own, whether an agent
// registered them or only the database has them, and that the number of the others is shown.
func TestMetricsByAccount(t *testing.T) {
	m := metrics.New("v1")
	m.Accounts.Limit = 3
	each := &accountMetrics{to: &m.Accounts}
	loads := []assigner.AccountLoad{
		{Account: "reported", State: assigner.Reported, Age: 2 * time.Second}, {Account: "gone", State: assigner.Orphaned},
		{Account: "z\xff", State: assigner.Failing},
	}
	m.OnScrape(func() { each.sample(loads) })
	metricstest.WantLines(t, m, `vedette_server_account_state{account="reported",state="reported"} 1`,
		`vedette_server_account_freshness_seconds{account="reported"} 2`, `vedette_server_account_state{account="gone",state="orphaned"} 1`,
		`no vedette_server_account_freshness_seconds{account="gone"}`, `no vedette_server_account_objects{`,
		"vedette_server_accounts_without_metrics 1")
	each.counts.Store(&accountCounts{
		"reported": {vedette.FeedLive: {Feeds: 2, Objects: 30}, vedette.FeedDenied: {Feeds: 1}}, "stored": {vedette.FeedPending: {Feeds: 1, Objects: 4}},
	})
	metricstest.WantLines(t, m, `vedette_server_account_feeds{account="reported",state="live"} 2`, `vedette_server_account_feeds{account="reported",state="syncing"} 0`,
		`vedette_server_account_objects{account="reported"} 30`, `vedette_server_account_objects{account="stored"} 4`,
		`vedette_server_account_state{account="stored",state="orphaned"} 1`, "vedette_server_accounts_without_metrics 1")
	loads = append(loads, assigner.AccountLoad{Account: "another", State: assigner.Reported})
	metricstest.WantLines(t, m, `vedette_server_account_state{account="another",state="reported"} 1`,
		`vedette_server_account_state{account="gone",state="orphaned"} 1`, `vedette_server_account_state{account="reported",state="reported"} 1`, `no account="stored"`,
		"vedette_server_accounts_without_metrics 2")
}

// TestFeedsAreCountedByAccount checks that the total is the same with and without metrics by account.
func TestFeedsAreCountedByAccount(t *testing.T) {
	st, err := store.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "v.db"), Log: discardLogger})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	m := metrics.New("v1")
	each := &accountMetrics{to: &m.Accounts}
	if counts, err := countFeeds(t.Context(), st, each); err != nil || len(counts) != 0 || each.counts.Load() != nil {
		t.Errorf("disabled: got %v, %v, want nothing by account", counts, err)
	}
	m.Accounts.Limit = 1
	if counts, err := countFeeds(t.Context(), st, each); err != nil || len(counts) != 0 || each.counts.Load() == nil {
		t.Errorf("enabled: got %v, %v, want counts by account", counts, err)
	}
}
