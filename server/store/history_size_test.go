package store_test

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/databases"
)

// TestHistorySizeSQLite and the others check that the history counts what it takes of the database.
func TestHistorySizeSQLite(t *testing.T) {
	testHistorySize(t, func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "vedette.db") }, func(*testing.T, string) {})
}

func TestHistorySizePostgreSQL(t *testing.T) {
	testHistorySize(t, func(t *testing.T) string { return databases.PostgreSQL(t) }, vacuum)
}

func TestHistorySizeMariaDB(t *testing.T) {
	testHistorySize(t, func(t *testing.T) string { return databases.MariaDB(t) }, func(*testing.T, string) {})
}

// vacuum does what PostgreSQL's autovacuum does each minute: without it, the rows that ends of operations have replaced would be counted.
func vacuum(t *testing.T, url string) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"operations", "operation_changes", "operation_objects"} {
		if _, err := db.ExecContext(t.Context(), "VACUUM "+table); err != nil {
			t.Fatal(err)
		}
	}
}

// What is counted may be less and more than what the database takes, in percent of it.
const (
	leastCounted = 85
	mostCounted  = 130
)

func testHistorySize(t *testing.T, start func(*testing.T) string, maintain func(*testing.T, string)) {
	for _, tt := range []struct {
		name  string
		n     int
		entry func(i int, accepted time.Time) history.Operation
	}{
		{"a fleet", 20_000, historyEntry},
		{"reads", 10_000, func(i int, accepted time.Time) history.Operation { return historyEntry(2*i+2, accepted) }},
		{"patches of 3 KiB", 4_000, patchEntry(3 << 10)},
		{"patches of 16 KiB", 1_000, patchEntry(16 << 10)},
		{"30 objects", 1_500, func(i int, accepted time.Time) history.Operation {
			o := historyEntry(2*i+1, accepted)
			o.Changes = nil
			for k := range 30 {
				o.Objects = append(o.Objects, vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: o.Namespace, Name: fmt.Sprintf("web-%08x-%d", i*2654435761%(1<<32), k)})
			}
			return o
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url := start(t)
			s := storetest.Open(t, url)
			before := sizeOf(t, s)
			accepted := time.Now().Add(-24 * time.Hour)
			const batch = 500
			for from := 0; from < tt.n; from += batch {
				var rows []history.Operation
				for i := from; i < min(from+batch, tt.n); i++ {
					o := tt.entry(i, accepted.Add(time.Duration(i)*time.Second))
					rows = append(rows, o)
					if o.Verb == vedette.VerbGet { // reads are recorded when they end
						continue
					}
					begun := o
					begun.Agent, begun.State, begun.Sent, begun.Ended, begun.Changes, begun.Objects = "", history.Pending, time.Time{}, time.Time{}, nil, nil
					if err := s.BeginOperation(t.Context(), begun); err != nil {
						t.Fatal(err)
					}
				}
				for at := 0; at < len(rows); at += 50 {
					if err := s.EndOperations(t.Context(), rows[at:min(at+50, len(rows))]); err != nil {
						t.Fatal(err)
					}
				}
				if from%5000 == 0 {
					maintain(t, url)
				}
			}
			maintain(t, url)
			counted, err := s.HistorySize(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			taken := sizeOf(t, s) - before
			percent := 100 * counted.Bytes / taken
			t.Logf("%d operations take %d bytes each, counted as %d (%d %%)", tt.n, taken/int64(tt.n), counted.Bytes/int64(tt.n), percent)
			if percent < leastCounted || percent > mostCounted {
				t.Errorf("got %d %% of what the database takes, want %d to %d", percent, leastCounted, mostCounted)
			}
		})
	}
}

// TestHistoryCountsWhatIsStored checks that texts of agents and callers that are cut when they are stored do not count as they came.
// Otherwise an agent could push the operations of all accounts out of the history with a few long answers.
func TestHistoryCountsWhatIsStored(t *testing.T) {
	s := storetest.Open(t, "sqlite:"+filepath.Join(t.TempDir(), "vedette.db"))
	long := strings.Repeat("x", 10<<20)
	o := historyEntry(2, time.Now())
	o.Message, o.Target, o.Origin, o.Name, o.Kind, o.Requester.Claimed = long, long, long, long, long, long
	o.Objects = []vedette.Key{{Kind: vedette.Kind{Name: "Pod", Group: long}, Namespace: long, Name: long}, {Kind: vedette.Kind{Name: "Pod"}, Name: "web"}}
	if err := s.EndOperations(t.Context(), []history.Operation{o}); err != nil {
		t.Fatal(err)
	}
	if size, err := s.HistorySize(t.Context()); err != nil || size.Bytes > 64<<10 {
		t.Errorf("got %d bytes and error %v for one operation, want what its texts take when they are cut", size.Bytes, err)
	}
}

func sizeOf(t *testing.T, s *store.Store) int64 {
	t.Helper()
	stats, err := s.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stats.Bytes
}

// patchEntry returns operations with a patch of about that size, of random values: what PostgreSQL can compress counts in full.
func patchEntry(size int) func(int, time.Time) history.Operation {
	random := rand.NewChaCha8([32]byte{7})
	return func(i int, accepted time.Time) history.Operation {
		o := historyEntry(2*i+1, accepted)
		value := make([]byte, 60)
		var patch bytes.Buffer
		for patch.Len() < size-200 {
			_, _ = random.Read(value) // never fails
			fmt.Fprintf(&patch, `,{"op":"add","path":"/data/%x","value":"%s"}`, value[:8], base64.StdEncoding.EncodeToString(value))
		}
		o.Changes[0].Patch = json.RawMessage("[" + patch.String()[1:] + "]")
		return o
	}
}
