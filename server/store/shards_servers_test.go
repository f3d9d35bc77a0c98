package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/lease"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/databases"
)

// serverOf opens a store as a server that shares its databases, and renews its leases until the test ends.
func serverOf(t *testing.T, id vedette.ServerID, url string, shards ...sqldb.Shard) *store.Store {
	t.Helper()
	s, _ := startServer(t, id, url, shards...)
	return s
}

// startServer is serverOf, and returns what freezes the server.
func startServer(t *testing.T, id vedette.ServerID, url string, shards ...sqldb.Shard) (s *store.Store, freeze func()) {
	t.Helper()
	s = storetest.OpenConfig(t, sqldb.Config{URL: url, Shards: shards, Server: id, Host: "h", Sharing: &sqldb.Sharing{PublicKey: []byte{}}})
	ctx, cancel := context.WithCancel(t.Context())
	var keeping sync.WaitGroup
	keeping.Go(func() { _ = s.KeepLease(ctx) }) // it is lost in some tests
	freeze = func() { cancel(); keeping.Wait() }
	t.Cleanup(freeze)
	return s, freeze
}

// TestServersMeetNewAccounts lets two servers register the same new accounts at once: each gets one database.
func TestServersMeetNewAccounts(t *testing.T) {
	t.Parallel()
	url, shards := databases.PostgreSQL(t), []sqldb.Shard{{Name: "b", URL: databases.PostgreSQL(t)}, {Name: "c", URL: databases.PostgreSQL(t)}}
	servers := []*store.Store{serverOf(t, "s1", url, shards...), serverOf(t, "s2", url, shards...)}
	const accounts = 12
	var all sync.WaitGroup
	for _, s := range servers {
		for n := range accounts {
			all.Go(func() {
				name := vedette.AccountName(fmt.Sprint("account-", n))
				if _, err := s.Register(t.Context(), vedette.Account{Name: name, Cluster: vedette.Cluster{UID: string(name)}}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	for _, s := range servers {
		rows, err := s.Accounts(t.Context())
		if err != nil || len(rows) != accounts {
			t.Errorf("got %d accounts, %v, want %d", len(rows), err, accounts)
		}
	}
	if counts := accountsOf(t, servers[0]); fmt.Sprint(counts) != "[4 4 4]" {
		t.Errorf("got %v accounts, want them spread evenly", counts)
	}
}

// TestAccountsDisappearAndAppearAtOnce removes and registers one account at two servers again and again. It is never in two databases, nor in one
// where nobody looks for it.
func TestAccountsDisappearAndAppearAtOnce(t *testing.T) {
	t.Parallel()
	url, shards := databases.PostgreSQL(t), []sqldb.Shard{{Name: "b", URL: databases.MariaDB(t)}}
	one, two := serverOf(t, "s1", url, shards...), serverOf(t, "s2", url, shards...)
	storetest.Register(t, one, "stays") // in the first, so that the other is chosen, and after that either
	a := vedette.Account{Name: "a", Cluster: vedette.Cluster{UID: "a"}}
	var all sync.WaitGroup
	for _, s := range []*store.Store{one, two} {
		all.Go(func() {
			for range 15 {
				if _, err := s.Register(t.Context(), a); err != nil && !isMoving(err) {
					t.Error("register:", err)
				}
			}
		})
		all.Go(func() {
			for range 15 {
				if _, err := s.DiscardAccount(t.Context(), "a"); err != nil && !isMoving(err) {
					t.Error("remove:", err)
				}
			}
		})
	}
	all.Wait()
	for _, s := range []*store.Store{one, two} {
		s.PublishAll() // servers tell each other, which has no part here
		if _, err := s.Register(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if rows, err := s.Accounts(t.Context()); err != nil || len(rows) != 2 {
			t.Errorf("got %d accounts, %v, want 2", len(rows), err)
		}
		if err := s.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := s.Account(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	}
}

// isMoving reports whether an error says that an account was removed meanwhile, which the agent's next try heals.
func isMoving(err error) bool {
	return errors.Is(err, registry.ErrNoAccount) || vedette.KindOf(err) == vedette.Unavailable && strings.Contains(err.Error(), "is being removed")
}

// TestNewShardWaitsForAllServers adds a database while a server runs that does not know it.
func TestNewShardWaitsForAllServers(t *testing.T) {
	t.Parallel()
	url, b, c := databases.PostgreSQL(t), sqldb.Shard{Name: "b", URL: databases.PostgreSQL(t)}, sqldb.Shard{Name: "c", URL: databases.PostgreSQL(t)}
	alone, stopAlone := startServer(t, "alone", url)
	storetest.Register(t, alone, "a")
	some, stopSome := startServer(t, "some", url, b)
	storetest.Register(t, some, "b")
	if counts := accountsOf(t, some); fmt.Sprint(counts) != "[2 0]" {
		t.Errorf("got %v accounts, want none where one server does not look", counts)
	}
	storetest.Register(t, alone, "c")
	stopAlone()
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	all := serverOf(t, "all", url, b, c)
	storetest.Register(t, all, "d")
	storetest.Register(t, some, "e")
	if counts := accountsOf(t, all); fmt.Sprint(counts) != "[3 2 0]" {
		t.Errorf("got %v accounts, want the new ones where both servers look", counts)
	}
	for _, s := range []*store.Store{some, all} {
		if names, err := s.AccountNames(t.Context()); err != nil || fmt.Sprint(names) != "[a b c d e]" {
			t.Errorf("got accounts %v, %v", names, err)
		}
	}
	stopSome()
	if err := some.Close(); err != nil {
		t.Fatal(err)
	}
	storetest.Register(t, all, "f")
	if counts := accountsOf(t, all); fmt.Sprint(counts) != "[3 2 1]" {
		t.Errorf("got %v accounts, want the new one in the new database", counts)
	}
	if _, err := store.Open(t.Context(), sqldb.Config{URL: url}); vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "3 accounts are in other databases") {
		t.Errorf("a server that knows one database: got %v, want an error", err)
	}
	if _, err := store.Open(t.Context(), sqldb.Config{URL: b.URL}); vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), `it is the database "b"`) {
		t.Errorf("a server whose first database is another's second: got %v, want an error", err)
	}
}

// TestEvictedServerWritesNowhere evicts a frozen server from the first database, and looks at its accounts in the other.
func TestEvictedServerWritesNowhere(t *testing.T) {
	t.Parallel()
	url, b := databases.PostgreSQL(t), sqldb.Shard{Name: "b", URL: databases.PostgreSQL(t)}
	frozen, freeze := startServer(t, "frozen", url, b)
	other := serverOf(t, "other", url, b)
	storetest.Register(t, frozen, "a")
	storetest.Register(t, frozen, "b")
	for _, name := range []vedette.AccountName{"a", "b"} {
		if _, err := frozen.Acquire(t.Context(), name, registry.CacherClaim{Agent: "x", Server: "frozen"}); err != nil {
			t.Fatal(err)
		}
	}
	freeze()
	servers, err := other.SharingServers(t.Context())
	if err != nil || len(servers) != 2 || servers[0].ID != "frozen" {
		t.Fatal(servers, err)
	}
	if evicted, err := other.EvictServer(t.Context(), servers[0]); err != nil || !evicted {
		t.Fatal(evicted, err)
	}
	if n, err := other.ReleaseEnded(t.Context()); err != nil || n != 2 {
		t.Errorf("released %d accounts, %v, want 2", n, err)
	}
	for _, name := range []vedette.AccountName{"a", "b"} {
		if row, err := other.Account(t.Context(), name); err != nil || row.Holder != "" || row.Term < 2 {
			t.Errorf("%s: got %+v, %v, want a later term and no holder", name, row, err)
		}
	}
	for _, shard := range other.Shards() {
		if servers, err := shard.SharingServers(t.Context()); err != nil || len(servers) != 1 || servers[0].ID != "other" {
			t.Errorf("database %s: got servers %v, %v, want the other one", shard.Name, servers, err)
		}
	}
	if err := frozen.KeepLease(t.Context()); !errors.Is(err, lease.ErrLost) {
		t.Errorf("got %v, want that the lease is lost", err)
	}
	for _, name := range []vedette.AccountName{"a", "b"} {
		if _, err := frozen.Acquire(t.Context(), name, registry.CacherClaim{Agent: "x", Server: "frozen"}); !errors.Is(err, lease.ErrLost) {
			t.Errorf("%s: got %v, want that the lease is lost", name, err)
		}
	}
}

// TestFrozenShard freezes one of two databases. What concerns accounts of the other goes on, and nothing is half of an answer.
func TestFrozenShard(t *testing.T) {
	t.Parallel()
	url, second := databases.PostgreSQL(t), databases.StartPostgreSQL(t, databases.Options{})
	s := serverOf(t, "s1", url, sqldb.Shard{Name: "b", URL: second.URL})
	inFirst, inSecond := storetest.NewWriter(t, s, "first"), storetest.NewWriter(t, s, "second")
	pod := storetest.Object(storetest.Pods, "n", "p", "1")
	inFirst.Put(pod)
	inSecond.Put(pod)
	second.Pause()
	t.Cleanup(second.Resume)
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	inFirst.Put(storetest.Object(storetest.Pods, "n", "q", "2"))
	if _, err := s.Object(short(), "first", pod.Key); err != nil {
		t.Error("an account of the first database:", err)
	}
	if _, err := s.Object(short(), "second", pod.Key); vedette.KindOf(err) != vedette.Unavailable {
		t.Errorf("an account of the second database: got %v, want that it does not answer", err)
	}
	if rows, err := s.Accounts(short()); err == nil {
		t.Errorf("got %d accounts, want an error", len(rows))
	}
	if _, err := s.Inventory(short()); err == nil {
		t.Error("got an inventory, want an error")
	}
	start := time.Now()
	o := history.Operation{ID: "01HZZZZZZZZZZZZZZZZZZZZZZZ", Account: "first", Verb: "apply", Accepted: start, Deadline: start}
	if err := s.BeginOperation(t.Context(), o); err != nil || time.Since(start) > 3*time.Second {
		t.Errorf("an operation on an account of the first database: got %v after %v", err, time.Since(start))
	}
	if found, err := s.Operation(short(), o.ID); err != nil || found.ID != o.ID {
		t.Errorf("got %v, %v, want the operation", found, err)
	}
	if _, err := s.Operation(short(), "01HZZZZZZZZZZZZZZZZZZZZZZ0"); err == nil || vedette.KindOf(err) == vedette.NotFound {
		t.Errorf("an operation that the second database may have: got %v, want another error than that there is none", err)
	}
	second.Resume()
	inSecond.Put(storetest.Object(storetest.Pods, "n", "q", "2"))
	if rows, err := s.Accounts(t.Context()); err != nil || len(rows) != 2 {
		t.Errorf("got %d accounts, %v, want 2", len(rows), err)
	}
}
