package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/databases"
	"github.com/vedette-io/vedette/test/proxy"
)

// proxiedStore is a store with a proxy in front of its database, and a direct connection.
type proxiedStore struct {
	*store.Store
	term   vedette.Term
	proxy  *proxy.Proxy
	direct *sql.DB
	serverKind
}

// serverKind is what differs between the databases.
type serverKind struct {
	driver         string
	commitMessage  string // part of the message that commits a transaction
	lockWaitsQuery string // returns the number of transactions that wait for a lock
}

func onProxiedServers(t *testing.T, test func(t *testing.T, r *proxiedStore)) {
	t.Parallel() // because it waits most of the time
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		dbURL := databases.PostgreSQL(t)
		test(t, newProxiedStore(t, dbURL, dbURL, serverKind{"pgx", "commit\x00",
			`SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`}))
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		dbURL := databases.MariaDB(t)
		dsn, err := databases.MySQLDSN(dbURL)
		if err != nil {
			t.Fatal(err)
		}
		test(t, newProxiedStore(t, dbURL, dsn, serverKind{"mysql", "\x03commit",
			`SELECT COUNT(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
				WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()`}))
	})
}

func parseURL(t *testing.T, rawURL string) *url.URL {
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

var (
	podKind        = vedette.Kind{Name: "Pod"}
	replicaSetKind = vedette.Kind{Group: "apps", Name: "ReplicaSet"}
)

func newProxiedStore(t *testing.T, dbURL, dsn string, s serverKind) *proxiedStore {
	u := parseURL(t, dbURL)
	p := proxy.New(t, u.Host)
	u.Host = p.Address()
	r := &proxiedStore{Store: storetest.Open(t, u.String()), proxy: p, serverKind: s}
	var err error
	r.direct, err = sql.Open(s.driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.direct.Close() })
	_, err = r.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}})
	if err != nil {
		t.Fatal(err)
	}
	r.term, err = r.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "a", Server: "s"})
	if err != nil {
		t.Fatal(err)
	}
	feed := commit.DeclaredFeed{Feed: vedette.Feed{Kind: podKind}, Resource: vedette.Resource{Kind: podKind, Version: "v1", Plural: "pods", Namespaced: true}}
	_, err = r.Declare(t.Context(), "prod", r.term, []commit.DeclaredFeed{feed, {Feed: vedette.Feed{Kind: replicaSetKind}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// commitPods commits n Pods.
func (r *proxiedStore) commitPods(ctx context.Context, n int) error {
	return r.commitKind(ctx, podKind, n)
}

// commitKind commits n objects.
func (r *proxiedStore) commitKind(ctx context.Context, kind vedette.Kind, n int) error {
	b := commit.Batch{Account: "prod", Term: r.term}
	for i := range n {
		b.Upserts = append(b.Upserts, vedette.Object{
			Key: vedette.Key{Kind: kind, Namespace: "n", Name: fmt.Sprintf("p-%d", i)}, UID: fmt.Sprint("u", i), ResourceVersion: "1",
		})
	}
	_, err := r.Commit(ctx, b)
	return err
}

func (r *proxiedStore) queryInt(t *testing.T, query string) (n int64) {
	t.Helper()
	if err := r.direct.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// waitForLock waits until a transaction waits for the lock of another one.
func (r *proxiedStore) waitForLock(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for r.countLockWaits(t) == 0 {
		if ctx.Err() != nil {
			t.Fatal("no transaction waits for a lock")
		}
	}
}

// lockWaits is held while a test reads the transactions that wait.
var lockWaits sync.Mutex

// countLockWaits reads the transactions that wait, after a pause: MariaDB refreshes their table only
// if no test has read it for a tenth of a second.
func (r *proxiedStore) countLockWaits(t *testing.T) int64 {
	t.Helper()
	lockWaits.Lock()
	defer lockWaits.Unlock()
	<-time.After(150 * time.Millisecond)
	return r.queryInt(t, r.lockWaitsQuery)
}

// TestLateCommitIsCountedOnce delays a commit, whose caller gives up, until the same batch is
// written again.
func TestLateCommitIsCountedOnce(t *testing.T) {
	onProxiedServers(t, func(t *testing.T, r *proxiedStore) {
		if err := r.commitPods(t.Context(), 1); err != nil { // the first commit also writes what later ones do not
			t.Fatal(err)
		}
		reached := r.proxy.HoldOnText(r.commitMessage)
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- r.commitPods(ctx, 3) }()
		<-reached
		cancel()
		if err := <-first; err == nil {
			t.Fatal("got no error for a commit without an answer, want one")
		}
		go func() { second <- r.commitPods(t.Context(), 3) }()
		r.waitForLock(t)
		r.proxy.Heal()
		if err := <-second; err != nil {
			t.Fatal(err)
		}
		rows, counted := r.queryInt(t, "SELECT COUNT(*) FROM objects"), r.queryInt(t, "SELECT SUM(objects) FROM feeds")
		if rows != 3 || counted != 3 {
			t.Errorf("got %d objects and a count of %d, want 3 and 3", rows, counted)
		}
	})
}

// TestLateCommitReachesReaders delays a commit, whose caller gives up, until readers have read what
// was stored before. They must read again after the next commit, although that one changes nothing.
func TestLateCommitReachesReaders(t *testing.T) {
	onProxiedServers(t, func(t *testing.T, r *proxiedStore) {
		if err := r.commitKind(t.Context(), replicaSetKind, 1); err != nil {
			t.Fatal(err)
		}
		reached := r.proxy.HoldOnText(r.commitMessage)
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- r.commitKind(ctx, replicaSetKind, 3) }()
		<-reached
		cancel()
		if err := <-first; err == nil {
			t.Fatal("got no error for a commit without an answer, want one")
		}
		// Readers get an error, because the proxy holds everything, but they know the version.
		before := r.ApplicationVersion("p")
		go func() { second <- r.commitKind(t.Context(), replicaSetKind, 3) }()
		r.waitForLock(t)
		r.proxy.Heal()
		if err := <-second; err != nil {
			t.Fatal(err)
		}
		if r.ApplicationVersion("p") == before {
			t.Error("got the same version of the application after a late commit, want another one")
		}
		inventory, err := r.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if a := inventory.Application("p"); a == nil || len(a.Accounts) != 1 || len(a.Accounts[0].Clusters) != 3 || a.Accounts[0].Clusters[0].Objects != 1 {
			t.Errorf("got %+v, want the three clusters of the ReplicaSets, each counted once", a)
		}
	})
}

// TestLockOfLostTransaction loses the connection of a transaction that holds locks. The database
// must release them itself.
func TestLockOfLostTransaction(t *testing.T) {
	onProxiedServers(t, func(t *testing.T, r *proxiedStore) {
		if err := r.commitPods(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		reached := r.proxy.HoldOnText(r.commitMessage)
		ctx, cancel := context.WithCancel(t.Context())
		lost := make(chan error, 1)
		go func() { lost <- r.commitPods(ctx, 2) }()
		<-reached
		cancel()
		if err := <-lost; err == nil {
			t.Fatal("got no error for a commit without an answer, want one")
		}
		r.retryCommit(t)
	})
}

// TestCommitSurvivesStrandedConnections loses all connections without notice to either end. The kernel's timeout
// is a quarter of an hour.
func TestCommitSurvivesStrandedConnections(t *testing.T) {
	onProxiedServers(t, func(t *testing.T, r *proxiedStore) {
		r.proxy.Blackhole()
		r.retryCommit(t)
	})
}

// retryCommit retries until the store can write again, as ingest does. Until then each error must
// be vedette.Unavailable.
func (r *proxiedStore) retryCommit(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	began := time.Now()
	tries := 0
	for ; ; tries++ {
		err := r.commitPods(ctx, 3)
		if err == nil {
			break
		}
		if vedette.KindOf(err) != vedette.Unavailable || ctx.Err() != nil {
			t.Fatalf("after %v: got %v, want an error of kind %s", time.Since(began), err, vedette.Unavailable)
		}
	}
	t.Logf("written after %v and %d retries", time.Since(began), tries)
}

// TestCloseAfterLostConnections checks that a stop does not fail because the server, or something in
// between, has closed idle connections.
func TestCloseAfterLostConnections(t *testing.T) {
	onProxiedServers(t, func(t *testing.T, r *proxiedStore) {
		if err := r.commitPods(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		r.proxy.Cut()
		if err := r.Close(); err != nil {
			t.Errorf("got %v", err)
		}
	})
}
