package convergence

import (
	"context"
	"database/sql"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/vedette-io/vedette/test/databases"
	"github.com/vedette-io/vedette/test/proxy"
)

// database is the database of a server.
type database struct {
	name string
	url  string  // for the server, through the proxy
	sql  *sql.DB // for the comparison, without the proxy and our code

	write         func(query string) error
	proxy         *proxy.Proxy                    // nil for SQLite
	errorInjector *databases.ErrorInjector        // nil for SQLite
	kill, start   func()                          // nil for SQLite
	pause, resume func()                          // nil for SQLite
	errors        []string                        // codes of errors that are not caused by a statement
	disk          *disk                           // only for SQLite
	lock, unlock  func(ctx context.Context) error // only for SQLite
	shard         *database                       // the other one, over which accounts are spread; nil for none
}

// all returns the database and the other one.
func (db *database) all() []*database {
	if db.shard == nil {
		return []*database{db}
	}
	return []*database{db, db.shard}
}

// databaseMakers creates databases by name.
var databaseMakers = map[string]func(t *testing.T) *database{"sqlite": newSQLite, "postgres": newPostgres, "mariadb": newMariaDB}

// shards is the name of what newSharded creates. Each test on every database would take too long with it, too.
const shards = "shards"

func newDatabase(t *testing.T, name string) *database {
	if name == shards {
		return newSharded(t)
	}
	return databaseMakers[name](t)
}

// newSharded creates two databases of two kinds, over which accounts are spread. Faults happen to one at a time.
func newSharded(t *testing.T) *database {
	db := newPostgres(t)
	db.shard = newMariaDB(t)
	return db
}

// everyDatabase returns the databases to run on.
func everyDatabase() []string {
	if *singleDB != "" && *singleDB != "all" {
		return []string{*singleDB}
	}
	return slices.Sorted(maps.Keys(databaseMakers))
}

// anyDatabase returns one database, for tests that hardly depend on it.
func anyDatabase() []string {
	if *singleDB != "" {
		return everyDatabase()
	}
	return []string{"sqlite"}
}

func newSQLite(t *testing.T) *database {
	d := newDisk(t)
	path := filepath.Join(d.dir, "vedette.db")
	write := func(query string) error {
		db := openDB(t, "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
		_, err := db.ExecContext(t.Context(), query)
		return err
	}
	lock, unlock := newWriteLock(t, path)
	return &database{name: "sqlite", url: "sqlite:" + path, disk: d, write: write, lock: lock, unlock: unlock,
		sql: openDB(t, "sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)")}
}

// newWriteLock returns functions that take and release the write lock, as a backup or a shell does.
func newWriteLock(t *testing.T, path string) (lock, unlock func(ctx context.Context) error) {
	db := openDB(t, "sqlite", "file:"+path+"?_pragma=busy_timeout(20000)")
	db.SetMaxOpenConns(1) // so that both statements use the same connection
	do := func(query string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, query)
			return err
		}
	}
	return do(`BEGIN IMMEDIATE`), do(`ROLLBACK`)
}

// Errors that servers return for reasons of their own: a failover, a shutdown, a full disk, limits
// of memory, connections and time, locks, and internal errors.
var (
	postgresErrors = []string{"25006", "25P03", "26000", "40001", "40P01", "53100", "53200", "53300", "55P03", "57014", "57P01", "57P03", "58030", "XX000"}
	mysqlErrors    = []string{"1021", "1030", "1040", "1047", "1053", "1105", "1180", "1205", "1213", "1290", "1317", "1792", "1836", "1927", "1969", "3024"}
)

// newPostgres starts a server that survives being killed. For that its commits must reach the
// operating system, but not the disk.
func newPostgres(t *testing.T) *database {
	server := databases.StartPostgreSQL(t, databases.Options{Settings: []string{"synchronous_commit=on", "full_page_writes=on"}})
	return newServer(t, "postgres", "pgx", server, server.URL, postgresErrors)
}

// newMariaDB is like newPostgres for MariaDB.
func newMariaDB(t *testing.T) *database {
	server := databases.StartMariaDB(t, databases.Options{Settings: []string{"innodb-flush-log-at-trx-commit=2", "innodb-doublewrite=1"}})
	dsn, err := databases.MySQLDSN(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return newServer(t, "mariadb", "mysql", server, dsn, mysqlErrors)
}

func newServer(t *testing.T, name, driver string, server *databases.Server, dsn string, errors []string) *database {
	db := &database{name: name, sql: openDB(t, driver, dsn), kill: server.Kill, start: server.Start, pause: server.Pause, resume: server.Resume, errors: errors}
	db.errorInjector, db.url = databases.StartErrorInjector(t, server.URL)
	db.proxy, db.url = behindProxy(t, db.url)
	db.write = func(query string) error {
		_, err := db.sql.ExecContext(t.Context(), query)
		return err
	}
	return db
}

func openDB(t *testing.T, driver, dsn string) *sql.DB {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(2)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// behindProxy starts a proxy in front of the server of a URL.
func behindProxy(t *testing.T, text string) (*proxy.Proxy, string) {
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p := proxy.New(t, u.Host)
	u.Host = p.Address()
	return p, u.String()
}
