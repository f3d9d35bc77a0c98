package sqldb_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/server/store/commit"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/test/logbuffer"
)

func TestErrorsBecomeTransactionResults(t *testing.T) {
	d := sqldb.OpenedDB(sqldb.PostgresDialect())
	for _, tt := range []struct {
		err  error
		want sqldb.TransactionResult
	}{
		{nil, sqldb.Committed},
		{&pgconn.PgError{Code: "40P01", Message: "deadlock detected"}, sqldb.Collided},
		{&pgconn.PgError{Code: "40001", Message: "could not serialize access"}, sqldb.Collided},
		{&pgconn.PgError{Code: "22001", Message: "value too long"}, sqldb.BadData},
		{&pgconn.PgError{Code: "57P01", Message: "terminating connection"}, sqldb.Unavailable},
		{driver.ErrBadConn, sqldb.Unavailable},
		{context.DeadlineExceeded, sqldb.Unavailable},
		{fmt.Errorf("write: %w", context.Canceled), sqldb.Canceled},
		{registry.ErrTerm, sqldb.Rejected},
		{commit.ErrNoFeed, sqldb.Rejected},
		{commit.ErrRewound, sqldb.Rejected},
		{registry.ErrNoAccount, sqldb.Rejected},
		{errors.New("anything else"), sqldb.OtherResult},
	} {
		if got := d.ResultOf(tt.err); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.err, got, tt.want)
		}
	}
}

// TestSlowWritesAreLogged checks that the log names a database while that takes long to write, without its password, and once a minute.
func TestSlowWritesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logbuffer.Buffer
		d := sqldb.UnopenedDB(sqldb.Config{URL: "postgres://vedette:geheim@db.example.com:5432/fleet", Log: slog.New(slog.NewTextHandler(&log, nil))})
		write := func(took time.Duration) { _ = d.Measure(func() error { time.Sleep(took); return nil }) }
		for _, row := range []struct {
			took     time.Duration
			warnings int // so far
		}{{4 * time.Second, 0}, {6 * time.Second, 1}, {6 * time.Second, 1}, {2 * time.Minute, 3}} {
			write(row.took)
			synctest.Wait()
			if got := len(log.Lines("takes long to write")); got != row.warnings {
				t.Errorf("got %d lines after a write of %v, want %d: %s", got, row.took, row.warnings, log.String())
			}
		}
		if text := log.String(); !strings.Contains(text, "database=db.example.com:5432/fleet") || strings.Contains(text, "geheim") || len(log.Lines("has ended")) != 2 {
			t.Errorf("got %s, want the database without its password, and the ends of the two writes that it names", text)
		}
	})
}

// TestTransactionsAreMeasured checks that each attempt to write is measured once.
func TestTransactionsAreMeasured(t *testing.T) {
	results := map[sqldb.TransactionResult]int{}
	s, err := store.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "v.db"),
		OnTransaction: func(result sqldb.TransactionResult, took time.Duration) {
			results[result]++
			if took < 0 {
				t.Errorf("got a duration of %v", took)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before := results[sqldb.Committed]
	if err := s.Write(t.Context(), func(context.Context, *sqldb.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), func(context.Context, *sqldb.Tx) error { return registry.ErrTerm }); !errors.Is(err, registry.ErrTerm) {
		t.Fatal(err)
	}
	if results[sqldb.Committed] != before+1 || results[sqldb.Rejected] != 1 {
		t.Errorf("got %v, want one more committed than %d, and one rejected", results, before)
	}
	stats := s.PoolStats()
	if stats[sqldb.WritePool].MaxOpenConnections == 0 || stats[sqldb.ReadPool].OpenConnections == 0 && len(stats) != 2 {
		t.Errorf("got %+v, want two pools", stats)
	}
	if counts, err := s.FeedCounts(t.Context()); err != nil || len(counts) != 0 || counts[vedette.FeedLive].Feeds != 0 {
		t.Errorf("got %v, %v, want no feeds", counts, err)
	}
}
