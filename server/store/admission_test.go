package store

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

// TestBatchesWriteAtLowPriority occupies SQLite's only writer while first a batch and then the
// ends of operations wait for it.
func TestBatchesWriteAtLowPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		var written []string // by the only writer, so it needs no lock
		upsert, insert := w.dialect.upsert, w.dialect.insert
		w.dialect.upsert = func(ctx context.Context, tx *transaction, account int64, rows []objectRow) error {
			written = append(written, "a batch")
			return upsert(ctx, tx, account, rows)
		}
		w.dialect.insert = func(ctx context.Context, tx *transaction, table string, columns []columnSpec, rows [][]any, or string) error {
			written = append(written, "operations")
			return insert(ctx, tx, table, columns, rows, or)
		}
		release := make(chan struct{})
		go func() {
			w.must(w.write(context.Background(), func(context.Context, *transaction) error { <-release; return nil }))
		}()
		synctest.Wait()
		go w.commit(5, podsAt(0, 3, 5)...)
		synctest.Wait()
		go func() {
			w.must(w.EndOperations(context.Background(), []OperationRow{{ID: "01J", Account: "prod"}, {ID: "01K", Account: "prod"}}))
		}()
		synctest.Wait()
		close(release)
		synctest.Wait()
		if want := []string{"operations", "a batch"}; !slices.Equal(written, want) {
			t.Errorf("got order %q, want %q", written, want)
		}
		w.must(w.Close())
	})
}
