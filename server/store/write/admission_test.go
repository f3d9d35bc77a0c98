package write_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// TestBatchesWriteAtLowPriority occupies SQLite's only writer while first a batch and then the
// ends of operations wait for it.
func TestBatchesWriteAtLowPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var written []string // by the only writer, so it needs no lock
		f.BeforeUpsert(func(int) { written = append(written, "a batch") })
		onConflictUpdate := f.DB.Dialect.OnConflictUpdate
		f.DB.Dialect.OnConflictUpdate = func(where string, columns []string) string {
			written = append(written, "operations")
			return onConflictUpdate(where, columns)
		}
		release := make(chan struct{})
		go func() {
			f.Must(f.Write(context.Background(), func(context.Context, *sqldb.Tx) error { <-release; return nil }))
		}()
		synctest.Wait()
		go f.CommitPods(5, storetest.PodsAt(0, 3, 5)...)
		synctest.Wait()
		go func() {
			f.Must(f.EndOperations(context.Background(), []history.Operation{{ID: "01J", Account: "prod"}, {ID: "01K", Account: "prod"}}))
		}()
		synctest.Wait()
		close(release)
		synctest.Wait()
		if want := []string{"operations", "a batch"}; !slices.Equal(written, want) {
			t.Errorf("got order %q, want %q", written, want)
		}
		f.Must(f.Close())
	})
}
