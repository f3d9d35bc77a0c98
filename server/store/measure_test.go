package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vedette-io/vedette"
)

func TestTransactionResults(t *testing.T) {
	s := openedStore(postgresDialect())
	for _, tt := range []struct {
		err  error
		want TransactionResult
	}{
		{nil, Committed},
		{&pgconn.PgError{Code: "40P01", Message: "deadlock detected"}, Collided},
		{&pgconn.PgError{Code: "40001", Message: "could not serialize access"}, Collided},
		{&pgconn.PgError{Code: "22001", Message: "value too long"}, BadData},
		{&pgconn.PgError{Code: "57P01", Message: "terminating connection"}, Unavailable},
		{driver.ErrBadConn, Unavailable},
		{context.DeadlineExceeded, Unavailable},
		{fmt.Errorf("write: %w", context.Canceled), Canceled},
		{ErrTerm, Rejected},
		{ErrNoFeed, Rejected},
		{ErrRewound, Rejected},
		{ErrNoAccount, Rejected},
		{errors.New("anything else"), OtherResult},
	} {
		if got := s.resultOf(tt.err); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.err, got, tt.want)
		}
	}
}

// TestTransactionsAreMeasured checks that each attempt to write is measured once.
func TestTransactionsAreMeasured(t *testing.T) {
	results := map[TransactionResult]int{}
	s, err := Open(t.Context(), Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "v.db"),
		OnTransaction: func(result TransactionResult, took time.Duration) {
			results[result]++
			if took < 0 {
				t.Errorf("got a duration of %v", took)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before := results[Committed]
	if err := s.write(t.Context(), func(context.Context, *transaction) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.write(t.Context(), func(context.Context, *transaction) error { return ErrTerm }); !errors.Is(err, ErrTerm) {
		t.Fatal(err)
	}
	if results[Committed] != before+1 || results[Rejected] != 1 {
		t.Errorf("got %v, want one more committed than %d, and one rejected", results, before)
	}
	stats := s.PoolStats()
	if stats[WritePool].MaxOpenConnections == 0 || stats[ReadPool].OpenConnections == 0 && len(stats) != 2 {
		t.Errorf("got %+v, want two pools", stats)
	}
	if counts, err := s.FeedCounts(t.Context()); err != nil || len(counts) != 0 || counts[vedette.FeedLive].Feeds != 0 {
		t.Errorf("got %v, %v, want no feeds", counts, err)
	}
}
