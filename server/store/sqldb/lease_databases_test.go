package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/lease"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/test/databases"
)

// onLeasedDatabases runs a test on each database that has a lease, in parallel.
func onLeasedDatabases(t *testing.T, test func(t *testing.T, url string)) {
	t.Parallel() // because it waits most of the time
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); test(t, databases.PostgreSQL(t)) })
	t.Run("MariaDB", func(t *testing.T) { t.Parallel(); test(t, databases.MariaDB(t)) })
}

func openAs(t *testing.T, url string, server vedette.ServerID) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), sqldb.Config{URL: url, Server: server, Host: "h"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keepLease renews a store's lease until stop is called.
func keepLease(t *testing.T, s *store.Store) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := s.KeepLease(ctx); err != nil {
			t.Error(err)
		}
	})
	return func() { cancel(); done.Wait() }
}

func closeStore(t *testing.T, s *store.Store) {
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
			_, err := store.Open(t.Context(), sqldb.Config{URL: url, Server: name, Host: "h"})
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
				term, err := frozen.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "a1", Server: "s1"})
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
func checkWritesRejected(t *testing.T, s *store.Store, term vedette.Term) {
	t.Helper()
	for what, write := range map[string]func() error{
		"register": func() error {
			_, err := s.Register(t.Context(), vedette.Account{Name: "late", Cluster: vedette.Cluster{UID: "x"}})
			return err
		},
		"commit": func() error { _, err := s.Declare(t.Context(), "prod", term, nil, nil); return err },
		"assign": func() error {
			_, err := s.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "a2", Server: "s1"})
			return err
		},
		"release":                  func() error { return s.Release(t.Context(), "prod", term, "s1") },
		"remove":                   func() error { return s.RemoveAccount(t.Context(), "prod") },
		"answer from memory":       func() error { return s.CheckLease(t.Context()) },
		"applications from memory": func() error { _, err := s.Inventory(t.Context()); return err },
	} {
		if err := write(); !errors.Is(err, lease.ErrLost) || vedette.KindOf(err) != vedette.Unavailable {
			t.Errorf("%s: got %v, want %v", what, err, lease.ErrLost)
		}
	}
	if err := s.KeepLease(t.Context()); !errors.Is(err, lease.ErrLost) {
		t.Errorf("KeepLease: got %v, want %v", err, lease.ErrLost)
	}
}

// TestDeletedLeaseIsLost deletes the row, and clears its token as a server does that has used the
// database in between.
func TestDeletedLeaseIsLost(t *testing.T) {
	onLeasedDatabases(t, func(t *testing.T, url string) {
		for _, change := range []string{`DELETE FROM lease`, `UPDATE lease SET token = ''`} {
			s := openAs(t, url, "s1")
			if err := s.Write(t.Context(), func(ctx context.Context, tx *sqldb.Tx) error {
				_, err := tx.Exec(ctx, sqldb.Named("test", change))
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if err := s.KeepLease(t.Context()); !errors.Is(err, lease.ErrLost) {
				t.Errorf("%s: got %v, want %v", change, err, lease.ErrLost)
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
			other := func(ctx context.Context, tx *sqldb.Tx) error {
				_, err := tx.Exec(ctx, sqldb.Named("test", meanwhile))
				return err
			}
			return s.Write(t.Context(), func(ctx context.Context, tx *sqldb.Tx) error {
				if _, err := tx.Exec(ctx, sqldb.Named("test", `UPDATE counters SET value = value + ? WHERE name = 'term'`), by); err != nil {
					return err
				}
				s.AgeLease()
				return s.WriteWithoutLease(ctx, other)
			})
		}
		if err := increment(1, `UPDATE lease SET renewed = renewed`); err != nil {
			t.Errorf("with its own lease: got %v, want no error", err)
		}
		if err := increment(1000, `UPDATE lease SET token = 'another', server = 's2'`); !errors.Is(err, lease.ErrLost) || vedette.KindOf(err) != vedette.Unavailable {
			t.Errorf("with the lease of another server: got %v, want %v", err, lease.ErrLost)
		}
		var value int64
		if err := s.QueryOne(t.Context(), sqldb.ScanInto(&value), sqldb.Named("test", `SELECT value FROM counters WHERE name = 'term'`)); err != nil || value != 1 {
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
		if needs := s.NeedsLease(); needs != s.HasLease() {
			t.Errorf("%s: got a lease: %v, want one: %v", s.DB.Dialect.Name, s.HasLease(), needs)
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
				s, err := store.Open(t.Context(), sqldb.Config{URL: url, Server: "s", Host: "h"})
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
