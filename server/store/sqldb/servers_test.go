package sqldb_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/lease"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

func sharing(url string, server vedette.ServerID) sqldb.Config {
	return sqldb.Config{URL: url, Server: server, Host: "host-of-" + string(server), Sharing: &sqldb.Sharing{
		URL: "https://" + string(server) + ":7002", PeerAddress: string(server) + ":7003", PublicKey: []byte("key of " + string(server)), Version: "1.2.3"}}
}

// openShared opens a database that servers share, until the test ends.
func openShared(t *testing.T, url string, server vedette.ServerID) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), sharing(url, server))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

// TestServersShareADatabase starts several servers at the same time on an empty database, and on one of the schema before.
func TestServersShareADatabase(t *testing.T) {
	start := func(t *testing.T, url string) {
		var wg sync.WaitGroup
		stores := make([]*store.Store, 3)
		for i := range stores {
			wg.Go(func() {
				s, err := store.Open(t.Context(), sharing(url, vedette.ServerID(fmt.Sprint("s", i))))
				if err != nil {
					t.Error(err)
					return
				}
				stores[i] = s
				t.Cleanup(func() { closeStore(t, s) })
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		servers, err := stores[0].SharingServers(t.Context())
		if err != nil || len(servers) != 3 {
			t.Fatalf("got %+v, %v, want three servers", servers, err)
		}
		s1 := servers[1]
		if s1.ID != "s1" || s1.Host != "host-of-s1" || s1.URL != "https://s1:7002" || s1.PeerAddress != "s1:7003" || string(s1.PublicKey) != "key of s1" ||
			s1.Version != "1.2.3" || s1.State != sqldb.ServerRunning || s1.Token != stores[1].ServerToken() || s1.Renewed.Before(s1.Started) || s1.Now.Before(s1.Renewed) {
			t.Errorf("got %+v", s1)
		}
		for i, s := range stores {
			if _, err := s.Register(t.Context(), vedette.Account{Name: vedette.AccountName(fmt.Sprint("a", i)), Cluster: vedette.Cluster{UID: "u"}}); err != nil {
				t.Error(err)
			}
			if s.IsOnlyWriter() {
				t.Error("a server that shares the database takes itself for the only writer")
			}
		}
		if err := stores[2].SetServerState(t.Context(), sqldb.ServerDraining); err != nil {
			t.Error(err)
		}
		if servers, err := stores[0].SharingServers(t.Context()); err != nil || servers[2].State != sqldb.ServerDraining || servers[1].State != sqldb.ServerRunning {
			t.Errorf("got %+v, %v, want that s2 drains", servers, err)
		}
	}
	t.Run("an empty database", func(t *testing.T) { onLeasedDatabases(t, start) })
	t.Run("the schema before", func(t *testing.T) {
		onOldSchemas(t, 15, func(t *testing.T, url string, _ *sql.DB) {
			if !strings.HasPrefix(url, "sqlite:") {
				start(t, url)
			}
		})
	})
}

// TestSharedOrAlone starts servers that use a database alone beside some that share it.
func TestSharedOrAlone(t *testing.T) {
	onLeasedDatabases(t, func(t *testing.T, url string) {
		wantConflict := func(cfg sqldb.Config, texts ...string) {
			t.Helper()
			s, err := store.Open(t.Context(), cfg)
			if err == nil {
				closeStore(t, s)
			}
			for _, text := range texts {
				if vedette.KindOf(err) != vedette.Conflict || !strings.Contains(err.Error(), text) {
					t.Errorf("server %s: got %v, want a conflict with %q", cfg.Server, err, text)
				}
			}
		}
		alone := openAs(t, url, "alone")
		stop := keepLease(t, alone)
		wantConflict(sharing(url, "s1"), "does not share it: alone on host h", "Stop the other server")
		stop()
		closeStore(t, alone)
		s1, err := store.Open(t.Context(), sharing(url, "s1"))
		if err != nil {
			t.Fatal(err)
		}
		stop = keepLease(t, s1)
		wantConflict(sqldb.Config{URL: url, Server: "alone", Host: "h"}, "is shared by other servers, one of which is s1 on host host-of-s1", "kubesvc.cluster")
		wantConflict(sharing(url, "s1"), "another process has the id of this server: s1 on host host-of-s1", "an id of its own")
		compatible := func() (from int64) {
			t.Helper()
			if err := s1.QueryOne(t.Context(), sqldb.ScanInto(&from), sqldb.Named("test", `SELECT compatible_from FROM schema_compatibility WHERE version = 16`)); err != nil {
				t.Fatal(err)
			}
			return from
		}
		if got := compatible(); got != 16 {
			t.Errorf("servers from version %d on may use the database while it is shared, want 16", got)
		}
		if text, err := sqldb.Probe(t.Context(), sqldb.Config{URL: url}); err != nil || !strings.Contains(text, "shared by server s1 on host host-of-s1") {
			t.Errorf("check: got %q, %v", text, err)
		}
		stop()
		closeStore(t, s1)
		alone = openAs(t, url, "alone")
		defer closeStore(t, alone)
		s1 = alone
		if got := compatible(); got != 15 {
			t.Errorf("servers from version %d on may use the database when it is not shared any more, want 15", got)
		}
	})
}

func TestSQLiteIsNotShared(t *testing.T) {
	_, err := store.Open(t.Context(), sharing("sqlite:"+t.TempDir()+"/vedette.db", "s1"))
	if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "use PostgreSQL") {
		t.Errorf("got %v, want an error that says which databases can be shared", err)
	}
}

// TestEvictedServersWriteNothing evicts a server that does not renew its row, as others do, and as the next process of the same server
// does. The server then continues.
func TestEvictedServersWriteNothing(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"another server", "its next process"} {
		t.Run(by, func(t *testing.T) {
			onLeasedDatabases(t, func(t *testing.T, url string) {
				frozen := openShared(t, url, "s1")
				if _, err := frozen.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}}); err != nil {
					t.Fatal(err)
				}
				term, err := frozen.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "a1", Server: "s1"})
				if err != nil {
					t.Fatal(err)
				}
				if by == "its next process" {
					openShared(t, url, "s1") // waits until the lease expires
				} else {
					other := openShared(t, url, "s2")
					servers, err := other.SharingServers(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					renewed := servers[0]
					renewed.Renewed = renewed.Renewed.Add(-time.Second)
					if evicted, err := other.EvictServer(t.Context(), renewed); evicted || err != nil {
						t.Fatalf("got %v, %v, want that a server stays that has renewed its row since it was read", evicted, err)
					}
					if evicted, err := other.EvictServer(t.Context(), servers[0]); !evicted || err != nil {
						t.Fatalf("got %v, %v, want that s1 is evicted", evicted, err)
					}
				}
				frozen.AgeLease()
				checkWritesRejected(t, frozen, term)
			})
		})
	}
}

// TestMigrationsBesideOlderServers starts servers of later releases while older ones share the database.
func TestMigrationsBesideOlderServers(t *testing.T) {
	onLeasedDatabases(t, func(t *testing.T, url string) {
		older := openShared(t, url, "older")
		next := fmt.Sprintf("%05d_later.sql", known+1)
		compatible := fstest.MapFS{next: {Data: []byte("-- +goose Up\n-- Compatible from: 16\nALTER TABLE accounts ADD COLUMN later INT NOT NULL DEFAULT 0;\n")}}
		s, err := store.Open(t.Context(), sharing(url, "newer").WithLater(compatible))
		if err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
		if _, err := older.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}}); err != nil {
			t.Error(err)
		}
		breaking := fstest.MapFS{next: compatible[next], fmt.Sprintf("%05d_later.sql", known+2): {
			Data: fmt.Appendf(nil, "-- +goose Up\n-- Compatible from: %d\nALTER TABLE accounts ADD COLUMN later2 INT NOT NULL DEFAULT 0;\n", known+2)}}
		_, err = store.Open(t.Context(), sharing(url, "newest").WithLater(breaking))
		if vedette.KindOf(err) != vedette.Conflict || !strings.Contains(err.Error(), "which server older of version 1.2.3 cannot use") {
			t.Errorf("got %v, want a conflict that names the older server", err)
		}
		if _, err := older.SharingServers(t.Context()); err != nil || errors.Is(err, lease.ErrLost) {
			t.Error(err)
		}
	})
}
