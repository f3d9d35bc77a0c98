package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/databases"
	"github.com/vedette-io/vedette/test/proxy"
)

// rig is a store with a proxy before its database, and a way past both.
type rig struct {
	*store.Store
	term   vedette.Term
	proxy  *proxy.Proxy
	direct *sql.DB
	server
}

// server is what differs between the databases.
type server struct {
	driver string
	commit string // the message that ends a transaction, in part
	waits  string // query for the number of transactions that wait for a lock
}

func onServers(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Run("postgres", func(t *testing.T) {
		at := databases.PostgreSQL(t)
		test(t, newRig(t, at, at, server{"pgx", "commit\x00",
			`SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`}))
	})
	t.Run("mariadb", func(t *testing.T) {
		at := databases.MariaDB(t)
		dsn, err := databases.MySQLDSN(at)
		if err != nil {
			t.Fatal(err)
		}
		test(t, newRig(t, at, dsn, server{"mysql", "\x03commit", `SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`}))
	})
}

func parse(t *testing.T, text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

var podKind = vedette.Kind{Name: "Pod"}

func newRig(t *testing.T, at, dsn string, s server) *rig {
	u := parse(t, at)
	p := proxy.New(t, u.Host)
	u.Host = p.Address()
	r := &rig{Store: storetest.Open(t, u.String()), proxy: p, server: s}
	var err error
	if r.direct, err = sql.Open(s.driver, dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.direct.Close() })
	if _, err = r.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}}); err != nil {
		t.Fatal(err)
	}
	if r.term, err = r.Take(t.Context(), "prod", store.Holder{Agent: "a", Server: "s"}); err != nil {
		t.Fatal(err)
	}
	feed := store.DeclaredFeed{Feed: vedette.Feed{Kind: podKind}, Resource: vedette.Resource{Kind: podKind, Version: "v1", Plural: "pods", Namespaced: true}}
	if _, err = r.Declare(t.Context(), "prod", r.term, []store.DeclaredFeed{feed}, nil); err != nil {
		t.Fatal(err)
	}
	return r
}

// write commits the first n of some objects.
func (r *rig) write(ctx context.Context, n int) error {
	b := store.Batch{Account: "prod", Term: r.term}
	for i := range n {
		b.Upserts = append(b.Upserts, vedette.Object{
			Key: vedette.Key{Kind: podKind, Namespace: "n", Name: fmt.Sprintf("p-%d", i)}, UID: fmt.Sprint("u", i), ResourceVersion: "1",
		})
	}
	_, err := r.Commit(ctx, b)
	return err
}

func (r *rig) number(t *testing.T, query string) (n int64) {
	t.Helper()
	if err := r.direct.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// awaitLock waits until a transaction waits for another's lock.
func (r *rig) awaitLock(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	// MariaDB shows its transactions as they were when somebody last left them
	// unread for a tenth of a second: who asks more often never hears any news.
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	for r.number(t, r.waits) == 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("no transaction waits for a lock")
		}
	}
}

// A commit is sent, and nothing is heard of it. It arrives late: while the same
// batch is being written once more.
func TestLateCommit(t *testing.T) {
	onServers(t, func(t *testing.T, r *rig) {
		if err := r.write(t.Context(), 1); err != nil { // what only the first one commits besides is done then
			t.Fatal(err)
		}
		sprung := r.proxy.HoldAt(r.commit)
		ctx, giveUp := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- r.write(ctx, 3) }()
		<-sprung
		giveUp()
		if err := <-first; err == nil {
			t.Fatal("a commit that was not answered succeeded")
		}
		go func() { second <- r.write(t.Context(), 3) }()
		r.awaitLock(t)
		r.proxy.Heal()
		if err := <-second; err != nil {
			t.Fatal(err)
		}
		rows, counted := r.number(t, "SELECT COUNT(*) FROM objects"), r.number(t, "SELECT objects FROM feeds")
		if rows != 3 || counted != 3 {
			t.Errorf("%d objects are stored and the feed counts %d, of 3", rows, counted)
		}
	})
}

// A transaction is lost with all that it has locked. The database must let go of
// that by itself: who held it never comes back.
func TestLockOfLostTransaction(t *testing.T) {
	onServers(t, func(t *testing.T, r *rig) {
		if err := r.write(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		sprung := r.proxy.HoldAt(r.commit)
		ctx, giveUp := context.WithCancel(t.Context())
		lost := make(chan error, 1)
		go func() { lost <- r.write(ctx, 2) }()
		<-sprung
		giveUp()
		if err := <-lost; err == nil {
			t.Fatal("a commit that was not answered succeeded")
		}
		r.writeAtLast(t)
	})
}

// All connections are lost and neither end is told. Waiting for the kernel to
// notice would take a quarter of an hour.
func TestStrandedConnections(t *testing.T) {
	onServers(t, func(t *testing.T, r *rig) {
		r.proxy.Strand()
		r.writeAtLast(t)
	})
}

// writeAtLast tries until the store can write again, as ingest does. Meanwhile
// the only error is that the database is not available.
func (r *rig) writeAtLast(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	began := time.Now()
	tries := 0
	for ; ; tries++ {
		err := r.write(ctx, 3)
		if err == nil {
			break
		}
		if vedette.KindOf(err) != vedette.Unavailable || ctx.Err() != nil {
			t.Fatalf("after %v: %v, and that the database is unavailable was due", time.Since(began), err)
		}
	}
	t.Logf("written after %v and %d tries", time.Since(began), tries)
}
