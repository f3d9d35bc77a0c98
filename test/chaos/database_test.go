package chaos

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/databases"
	"github.com/vedette-io/vedette/test/faults"
)

// database is what the servers share.
type database struct {
	urls  []string // by server, without a proxy
	sql   *sql.DB  // for comparisons
	parts []faults.Part
}

// newDatabase starts a database that survives being killed. For that its commits must reach the operating system, but not the disk.
func newDatabase(t *testing.T, name string, servers int) *database {
	t.Helper()
	switch name {
	case "postgres":
		return newPostgreSQL(t, servers)
	case "mariadb":
		return newMariaDB(t, servers)
	case "galera", "galera-nodes":
		return newGalera(t, servers, name == "galera-nodes")
	case "patroni":
		return newPatroni(t, servers)
	}
	t.Fatalf("there is no database %q: use postgres, patroni, mariadb, galera or galera-nodes", name)
	return nil
}

func newPostgreSQL(t *testing.T, servers int) *database {
	server := databases.StartPostgreSQL(t, databases.Options{Settings: []string{"synchronous_commit=on", "full_page_writes=on"}})
	db := &database{urls: repeat(server.URL, servers), sql: open(t, "pgx", server.URL)}
	// A standby that does not exist makes each commit wait, while reads go on, as a disk does that does not write.
	hang := stalledCommits{
		begin: func(ctx context.Context) error {
			return execAll(ctx, db.sql, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
		},
		end: func(ctx context.Context) error {
			return execAll(ctx, db.sql, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
		},
	}
	db.parts = []faults.Part{faults.NewPart("database", append(processFaults(server), hang.faults()...)...)}
	return db
}

// newPatroni starts a primary of PostgreSQL whose commits another node has, too. Its faults end when all nodes follow the primary again, because
// two of three are needed.
func newPatroni(t *testing.T, servers int) *database {
	binaries, err := controlplane.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	cluster := databases.StartPatroni(t, databases.PatroniOptions{Options: databases.Options{Settings: []string{"synchronous_commit=on", "full_page_writes=on"}},
		EtcdProgram: binaries["etcd"], Synchronous: true})
	awaitAll := func(ctx context.Context) error { return cluster.FindReplicas(ctx, len(cluster.Nodes)-1, true) }
	if err := awaitAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	db := &database{urls: repeat(cluster.Proxy.URL, servers), sql: open(t, "pgx", cluster.Proxy.URL)}
	var failing *databases.PatroniNode
	of := func(find func(context.Context) (*databases.PatroniNode, error), fail func(*databases.PatroniNode)) func(context.Context) error {
		return func(ctx context.Context) (err error) {
			if failing, err = find(ctx); err == nil {
				fail(failing)
			}
			return err
		}
	}
	handOver := func(ctx context.Context) error {
		if err := cluster.HandOver(ctx); err != nil {
			return err
		}
		return awaitAll(ctx)
	}
	kill, pause := func(n *databases.PatroniNode) { n.Kill() }, func(n *databases.PatroniNode) { n.Pause() }
	start := func(ctx context.Context) error {
		if err := failing.StartAgain(); err != nil {
			return err
		}
		return awaitAll(ctx)
	}
	resume := func(ctx context.Context) error { failing.Resume(); return awaitAll(ctx) }
	db.parts = []faults.Part{faults.NewPart("database",
		faults.New("loses its primary", of(cluster.FindPrimary, kill), start, 10*time.Second, 3),
		faults.New("has a primary that freezes, and wakes when another one has taken over", of(cluster.FindPrimary, pause), resume, longest(20*time.Second), 2),
		faults.New("hands over to another primary", handOver, nil, 0, 1),
		faults.New("loses the replica that has all commits", of(cluster.Synchronous, kill), start, 5*time.Second, 1),
		faults.New("cannot reach what chooses the primary", faults.Infallible(cluster.Etcd.Pause),
			func(ctx context.Context) error { cluster.Etcd.Resume(); return awaitAll(ctx) }, longest(10*time.Second), 1),
	)}
	return db
}

func newMariaDB(t *testing.T, servers int) *database {
	server := databases.StartMariaDB(t, databases.Options{Settings: []string{"innodb-flush-log-at-trx-commit=2", "innodb-doublewrite=1"}})
	db := &database{urls: repeat(server.URL, servers), sql: openMySQL(t, server.URL)}
	var locked *sql.Conn // a lock belongs to a connection
	hang := stalledCommits{
		begin: func(ctx context.Context) (err error) {
			if locked, err = db.sql.Conn(ctx); err != nil {
				return err
			}
			_, err = locked.ExecContext(ctx, "FLUSH TABLES WITH READ LOCK")
			return err
		},
		end: func(context.Context) error {
			// The error makes the connection be closed, and not returned with its lock.
			_ = locked.Raw(func(any) error { return driver.ErrBadConn })
			return nil
		},
	}
	db.parts = []faults.Part{faults.NewPart("database", append(processFaults(server), hang.faults()...)...)}
	return db
}

func newGalera(t *testing.T, servers int, ownNodes bool) *database {
	cluster := databases.StartGalera(t, databases.Options{Settings: []string{"innodb-flush-log-at-trx-commit=2", "innodb-doublewrite=1"}})
	proxy := databases.StartGaleraProxy(t, cluster)
	db := &database{urls: repeat(proxy.URL, servers), sql: openMySQL(t, proxy.URL)}
	if ownNodes {
		for i := range db.urls {
			db.urls[i] = cluster.Nodes[i%len(cluster.Nodes)].URL
		}
	}
	// One node fails at a time, because two of three are needed.
	var list []faults.Fault
	for i, node := range cluster.Nodes {
		rejoin := func() { cluster.AwaitMember(i) }
		for _, f := range processFaults(node) {
			f.Name = fmt.Sprintf("node %d %s", i, f.Name)
			end := f.End
			f.End = func(ctx context.Context) error { err := end(ctx); rejoin(); return err }
			list = append(list, f)
		}
		list = append(list, faults.New(fmt.Sprintf("node %d is cut off from the others", i), faults.Infallible(func() { cluster.Isolate(i) }),
			faults.Infallible(func() { cluster.Rejoin(i); rejoin() }), longest(10*time.Second), 2))
	}
	db.parts = []faults.Part{faults.NewPart("database", list...)}
	return db
}

// processFaults returns the faults of a database's server.
func processFaults(s *databases.Server) []faults.Fault {
	return []faults.Fault{
		faults.New("is killed", faults.Infallible(s.Kill), faults.Infallible(s.Start), 4*time.Second, 2),
		faults.New("is restarted", faults.Infallible(s.Stop), faults.Infallible(s.Start), 2*time.Second, 1),
		faults.New("is frozen", faults.Infallible(s.Pause), faults.Infallible(s.Resume), longest(8*time.Second), 2),
	}
}

// stalledCommits makes commits wait, and nothing else.
type stalledCommits struct {
	begin, end func(ctx context.Context) error
}

// faults returns a disk that writes nothing, and one that writes now and then.
func (s stalledCommits) faults() []faults.Fault {
	var stop context.CancelFunc
	var stopped chan error
	slow := func(context.Context) error {
		var ctx context.Context
		ctx, stop = context.WithCancel(context.Background())
		stopped = make(chan error, 1)
		go func() { stopped <- s.pulse(ctx) }()
		return nil
	}
	return []faults.Fault{
		faults.New("cannot commit", s.begin, s.end, longest(8*time.Second), 1),
		faults.New("commits slowly", slow, func(context.Context) error { stop(); return <-stopped }, longest(10*time.Second), 2),
	}
}

// pulse lets commits through for a moment, again and again, until ctx ends.
func (s stalledCommits) pulse(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.begin(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		sleep(ctx, 400*time.Millisecond)
		if err := s.end(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		sleep(ctx, 50*time.Millisecond)
	}
	return nil
}

func repeat(text string, n int) []string {
	urls := make([]string, n)
	for i := range urls {
		urls[i] = text
	}
	return urls
}

func execAll(ctx context.Context, db *sql.DB, statements ...string) error {
	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

func openMySQL(t *testing.T, text string) *sql.DB {
	t.Helper()
	dsn, err := databases.MySQLDSN(text)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, "mysql", dsn)
}

func open(t *testing.T, driverName, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driverName, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func hostOf(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
