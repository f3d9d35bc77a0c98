package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/databases"
)

func TestLeaseDecisions(t *testing.T) {
	const start = 1_000_000_000
	leaseAt := func(renewed, now time.Duration) leaseRow {
		return leaseRow{server: "s1", host: "h1", token: "t1", renewed: start + renewed.Microseconds(), now: start + now.Microseconds()}
	}
	first := leaseObservation{row: leaseAt(0, 0)}
	renewed := leaseAt(time.Second, time.Second)
	other := leaseAt(0, time.Hour)
	other.token = "t2"
	for _, tt := range []struct {
		name    string
		row     leaseRow
		watched time.Duration
		want    leaseDecision
	}{
		{"free", leaseRow{}, 0, takeLease},
		{"first read, renewed recently", leaseAt(0, 0), 0, awaitLease},
		{"first read, old by a clock that may just have been set", leaseAt(0, time.Hour), 0, awaitLease},
		{"unchanged, and old", leaseAt(0, time.Hour), 2 * time.Second, takeLease},
		{"unchanged, renewed recently", leaseAt(0, 2*time.Second), 2 * time.Second, awaitLease},
		{"unchanged for its whole TTL", leaseAt(0, 10*time.Second), 10 * time.Second, takeLease},
		{"unchanged, by a clock that was set back", leaseAt(0, -time.Hour), 9 * time.Second, awaitLease},
		{"unchanged for its whole TTL, by a clock that was set back", leaseAt(0, -time.Hour), 10 * time.Second, takeLease},
		{"renewed", renewed, 2 * time.Second, refuseLease},
		{"renewed, and watched for long because this process was frozen", renewed, time.Hour, refuseLease},
		{"taken by another process", other, time.Hour, refuseLease},
	} {
		if got := first.decide(tt.row, tt.watched, otherLeaseTTL); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// onLeasedDatabases runs a test on each database that has a lease, in parallel.
func onLeasedDatabases(t *testing.T, test func(t *testing.T, url string)) {
	t.Parallel() // because it waits most of the time
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); test(t, databases.PostgreSQL(t)) })
	t.Run("MariaDB", func(t *testing.T) { t.Parallel(); test(t, databases.MariaDB(t)) })
}

func openAs(t *testing.T, url string, server vedette.ServerID) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{URL: url, Server: server, Host: "h"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keepLease renews a store's lease until stop is called.
func keepLease(t *testing.T, s *Store) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := s.KeepLease(ctx); err != nil {
			t.Error(err)
		}
	})
	return func() { cancel(); done.Wait() }
}

func closeStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestOneServerPerDatabase starts a second server with another and with the same name. It is
// rejected until the first one has stopped.
func TestOneServerPerDatabase(t *testing.T) {
	onLeasedDatabases(t, func(t *testing.T, url string) {
		first := openAs(t, url, "s1")
		stop := keepLease(t, first)
		for _, name := range []vedette.ServerID{"s2", "s1"} {
			_, err := Open(t.Context(), Config{URL: url, Server: name, Host: "h"})
			if vedette.KindOf(err) != vedette.Conflict || !strings.Contains(err.Error(), "s1 on host h") || !strings.Contains(err.Error(), "last seen") {
				t.Errorf("server %s: got %v, want a conflict that names s1", name, err)
			}
		}
		if _, err := first.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}}); err != nil {
			t.Errorf("the first server: got %v, want no error", err)
		}
		stop()
		closeStore(t, first)
		second := openAs(t, url, "s2")
		defer closeStore(t, second)
		if err := second.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLeaseTakeoverAfterCrash starts a server while the lease of a frozen one has not expired. The
// frozen server then continues and must write nothing.
func TestLeaseTakeoverAfterCrash(t *testing.T) {
	t.Parallel()
	for _, name := range []vedette.ServerID{"s1", "s2"} {
		t.Run(string(name), func(t *testing.T) {
			onLeasedDatabases(t, func(t *testing.T, url string) {
				frozen := openAs(t, url, "s1")
				defer closeStore(t, frozen)
				if _, err := frozen.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}}); err != nil {
					t.Fatal(err)
				}
				term, err := frozen.Acquire(t.Context(), "prod", Holder{Agent: "a1", Server: "s1"})
				if err != nil {
					t.Fatal(err)
				}
				next := openAs(t, url, name) // waits until the lease expires
				defer closeStore(t, next)
				defer keepLease(t, next)()
				if err := next.ReleaseAll(t.Context()); err != nil {
					t.Fatal(err)
				}
				checkWritesRejected(t, frozen, term)
				if row, err := next.Account(t.Context(), "prod"); err != nil || row.Term <= term || row.Holder != "" {
					t.Errorf("got %+v, %v, want a later term than %d and no holder", row, err, term)
				}
			})
		})
	}
}

// checkWritesRejected expects all writes of a server that has lost its lease to fail, and what it
// would answer from memory.
func checkWritesRejected(t *testing.T, s *Store, term vedette.Term) {
	t.Helper()
	for what, write := range map[string]func() error{
		"register": func() error {
			_, err := s.Register(t.Context(), vedette.Account{Name: "late", Cluster: vedette.Cluster{UID: "x"}})
			return err
		},
		"commit":                   func() error { _, err := s.Declare(t.Context(), "prod", term, nil, nil); return err },
		"assign":                   func() error { _, err := s.Acquire(t.Context(), "prod", Holder{Agent: "a2", Server: "s1"}); return err },
		"release":                  func() error { return s.Release(t.Context(), "prod", term) },
		"remove":                   func() error { return s.RemoveAccount(t.Context(), "prod") },
		"answer from memory":       func() error { return s.CheckLease(t.Context()) },
		"applications from memory": func() error { _, err := s.Inventory(t.Context()); return err },
	} {
		if err := write(); !errors.Is(err, ErrLeaseLost) || vedette.KindOf(err) != vedette.Unavailable {
			t.Errorf("%s: got %v, want %v", what, err, ErrLeaseLost)
		}
	}
	if err := s.KeepLease(t.Context()); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("KeepLease: got %v, want %v", err, ErrLeaseLost)
	}
}

// TestDeletedLeaseIsLost deletes the row, and clears its token as a server does that has used the
// database in between.
func TestDeletedLeaseIsLost(t *testing.T) {
	onLeasedDatabases(t, func(t *testing.T, url string) {
		for _, change := range []string{`DELETE FROM lease`, `UPDATE lease SET token = ''`} {
			s := openAs(t, url, "s1")
			if err := s.write(t.Context(), func(ctx context.Context, tx *transaction) error { _, err := tx.exec(ctx, change); return err }); err != nil {
				t.Fatal(err)
			}
			if err := s.KeepLease(t.Context()); !errors.Is(err, ErrLeaseLost) {
				t.Errorf("%s: got %v, want %v", change, err, ErrLeaseLost)
			}
			closeStore(t, s)
		}
		closeStore(t, openAs(t, url, "s2")) // inserts the row again
	})
}

// TestLeaseIsCheckedBeforeCommit freezes a server between the last statement of a transaction and
// its commit. The commit fails only if another server has taken the database over; otherwise
// nothing could be written while renewals are slow.
func TestLeaseIsCheckedBeforeCommit(t *testing.T) {
	onLeasedDatabases(t, func(t *testing.T, url string) {
		s := openAs(t, url, "s1")
		defer closeStore(t, s)
		increment := func(by int, meanwhile string) error {
			other := func(ctx context.Context, tx *transaction) error { _, err := tx.exec(ctx, meanwhile); return err }
			return s.write(t.Context(), func(ctx context.Context, tx *transaction) error {
				if _, err := tx.exec(ctx, `UPDATE counters SET value = value + ? WHERE name = 'term'`, by); err != nil {
					return err
				}
				s.lease.confirm(time.Now().Add(-ownLeaseTTL)) // as if the TTL had passed
				return s.writeWithoutLease(ctx, other)
			})
		}
		if err := increment(1, `UPDATE lease SET renewed = renewed`); err != nil {
			t.Errorf("with its own lease: got %v, want no error", err)
		}
		if err := increment(1000, `UPDATE lease SET token = 'another', server = 's2'`); !errors.Is(err, ErrLeaseLost) || vedette.KindOf(err) != vedette.Unavailable {
			t.Errorf("with the lease of another server: got %v, want %v", err, ErrLeaseLost)
		}
		var value int64
		if err := s.queryOne(t.Context(), scanInto(&value), `SELECT value FROM counters WHERE name = 'term'`); err != nil || value != 1 {
			t.Errorf("got counter %d, %v, want 1", value, err)
		}
	})
}

// TestUpgradeFromSchemaWithoutLease opens a database of a server version that had no lease.
func TestUpgradeFromSchemaWithoutLease(t *testing.T) {
	onOldSchemas(t, 4, func(t *testing.T, url string, _ *sql.DB) {
		s := openAs(t, url, "s1")
		defer closeStore(t, s)
		if _, err := s.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}}); err != nil {
			t.Error(err)
		}
		if needs := s.dialect.clockExpr != ""; needs != (s.lease != nil) {
			t.Errorf("%s: got lease %v, want one: %v", s.dialect.name, s.lease, needs)
		}
	})
}

// TestConcurrentStartsHaveOneWinner starts several servers at the same time.
func TestConcurrentStartsHaveOneWinner(t *testing.T) {
	onLeasedDatabases(t, func(t *testing.T, url string) {
		closeStore(t, openAs(t, url, "s0")) // creates the schema
		var wg sync.WaitGroup
		winners := make(chan func(), 4)
		for range 4 {
			wg.Go(func() {
				s, err := Open(t.Context(), Config{URL: url, Server: "s", Host: "h"})
				if err == nil {
					stop := keepLease(t, s)
					winners <- func() { stop(); closeStore(t, s) }
					return
				}
				if vedette.KindOf(err) != vedette.Conflict {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		close(winners)
		n := 0
		for end := range winners {
			n++
			end()
		}
		if n != 1 {
			t.Errorf("got %d servers that use the database, want 1", n)
		}
	})
}
