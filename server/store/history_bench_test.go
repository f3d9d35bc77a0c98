package store_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/databases"
)

func BenchmarkHistorySQLite(b *testing.B) {
	benchmarkHistory(b, "sqlite:"+filepath.Join(b.TempDir(), "vedette.db"))
}

func BenchmarkHistoryPostgreSQL(b *testing.B) {
	benchmarkHistory(b, databases.StartPostgreSQL(b, databases.Options{}).URL)
}

func BenchmarkHistoryMariaDB(b *testing.B) {
	benchmarkHistory(b, databases.StartMariaDB(b, databases.Options{}).URL)
}

// historyEntries returns how many operations the history of the benchmarks has; HISTORY_ENTRIES overrides it.
func historyEntries(b *testing.B) int {
	if n, err := strconv.Atoi(os.Getenv("HISTORY_ENTRIES")); err == nil {
		return n
	}
	if testing.Short() {
		b.Skip("fills a database with a million operations")
	}
	return 1_000_000
}

// benchmarkHistory reads the first page and a page in the middle by each filter. Half of the operations changed something.
// The rarest value of each filter is in one of a thousand or ten thousand.
func benchmarkHistory(b *testing.B, url string) {
	s := storetest.Open(b, url)
	n := historyEntries(b)
	start := time.Now().Add(-30 * 24 * time.Hour)
	step := 30 * 24 * time.Hour / time.Duration(n)
	began := time.Now()
	for from := 0; from < n; from += 1000 {
		rows := make([]history.Operation, 0, 1000)
		for i := from; i < min(from+1000, n); i++ {
			rows = append(rows, historyEntry(i, start.Add(time.Duration(i)*step)))
		}
		if err := s.EndOperations(b.Context(), rows); err != nil {
			b.Fatal(err)
		}
	}
	size, err := s.HistorySize(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	stats, err := s.Stats(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d entries in %v; counted %d bytes each, on disk %d", n, time.Since(began).Round(time.Second), size.Bytes/size.Entries, stats.Bytes/size.Entries)
	middle := start.Add(15 * 24 * time.Hour)
	for _, bench := range []struct {
		name  string
		query history.Query
	}{
		{"newest", history.Query{}},
		{"middle", history.Query{Until: middle}},
		{"since and until", history.Query{Since: middle, Until: middle.Add(time.Hour)}},
		{"account", history.Query{Accounts: []vedette.AccountName{"account-007"}}},
		{"100 accounts", history.Query{Accounts: accountNames(100)}},
		{"user", history.Query{User: "user-42"}},
		{"rare user", history.Query{User: "rare"}},
		{"verb", history.Query{Verb: vedette.VerbScale}},
		{"rare verb", history.Query{Verb: vedette.VerbUndo}},
		{"state done", history.Query{State: vedette.Done}},
		{"state lost", history.Query{State: vedette.Lost}},
		{"origin", history.Query{Origin: "task 77"}},
		{"agent", history.Query{Agent: "agent-3"}},
		{"object", history.Query{Kinds: []string{"Deployment.apps", "deployment"}, Name: "web-77", Namespace: "shop-7"}},
		{"namespace", history.Query{Namespace: "shop-7"}},
		{"account, user and state", history.Query{Accounts: []vedette.AccountName{"account-007"}, User: "user-42", State: vedette.Done}},
		{"nobody", history.Query{User: "nobody"}},
	} {
		bench.query.Limit = 30
		b.Run(bench.name, func(b *testing.B) {
			var times []time.Duration
			for b.Loop() {
				began := time.Now()
				rows, _, err := s.Operations(b.Context(), bench.query)
				if err != nil || len(rows) == 0 && bench.name != "nobody" {
					b.Fatal(len(rows), err)
				}
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
	b.Run("size", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.HistorySize(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("purge 500", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := s.PurgeOperations(b.Context(), time.Now(), 500); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func accountNames(n int) (names []vedette.AccountName) {
	for i := range n {
		names = append(names, vedette.AccountName(fmt.Sprintf("account-%03d", i)))
	}
	return names
}

// historyEntry returns an operation as a fleet of 500 accounts has them.
func historyEntry(i int, accepted time.Time) history.Operation {
	hash := i * 2654435761 % (1 << 32) // spread, and the same each time
	o := history.Operation{ID: vedette.OperationID(ulid.MustNew(ulid.Timestamp(accepted), ulid.DefaultEntropy()).String()),
		Account: vedette.AccountName(fmt.Sprintf("account-%03d", hash%500)), Agent: vedette.AgentID(fmt.Sprintf("agent-%d", hash%50)), Server: "server-1",
		Verb: vedette.VerbApply, Requester: vedette.Requester{User: fmt.Sprintf("user-%d", hash/500%200), Proven: "certificate CN=gate,O=example", Service: "gate", Address: "10.1.2.3"},
		Origin: fmt.Sprintf("task %d", i/10), State: vedette.Done, Status: 200, Accepted: accepted, Sent: accepted.Add(time.Millisecond), Ended: accepted.Add(time.Second),
		Kind: "Deployment.apps", Namespace: fmt.Sprintf("shop-%d", hash%100), Name: fmt.Sprintf("web-%d", hash/100%1000)}
	o.Requester.Claimed = o.Requester.User
	o.Target = "Deployment " + o.Namespace + "/" + o.Name
	switch {
	case i%10_000 == 0:
		o.Verb, o.State, o.Requester.User = vedette.VerbUndo, vedette.Lost, "rare"
	case i%100 == 0:
		o.Verb, o.State = vedette.VerbScale, vedette.Failed
	case i%2 == 0:
		o.Verb, o.Kind = vedette.VerbGet, "Pod"
		return o
	}
	o.Changes = []vedette.ObjectChange{{Key: vedette.Key{Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Namespace: o.Namespace, Name: o.Name},
		Before: strconv.Itoa(i), After: strconv.Itoa(i + 1), TemplateBefore: "0123456789abcdef", TemplateAfter: "fedcba9876543210",
		Patch: json.RawMessage(`[{"op":"test","path":"/spec/template/spec/containers/0/image","value":"registry.example.com/shop/web:1.2.3"},{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example.com/shop/web:1.2.4"}]`)}}
	return o
}
