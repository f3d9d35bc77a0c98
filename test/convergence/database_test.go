package convergence

import (
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

// database is what a server keeps its data in.
type database struct {
	name string
	url  string  // for the server, past the proxy
	sql  *sql.DB // for the oracle, past proxy and product

	write       func(query string) error
	proxy       *proxy.Proxy // nil of SQLite
	kill, start func()       // nil of SQLite
	disk        *disk        // nil but of SQLite
}

// makers are those that a test runs on.
var makers = map[string]func(t *testing.T) *database{"sqlite": newSQLite, "postgres": newPostgres, "mariadb": newMariaDB}

// everyDatabase are the databases to run on.
func everyDatabase() []string {
	if *oneDB != "" && *oneDB != "all" {
		return []string{*oneDB}
	}
	return slices.Sorted(maps.Keys(makers))
}

// anyDatabase is one, for what has little to do with databases.
func anyDatabase() []string {
	if *oneDB != "" {
		return everyDatabase()
	}
	return []string{"sqlite"}
}

func newSQLite(t *testing.T) *database {
	d := newDisk(t)
	path := filepath.Join(d.dir, "vedette.db")
	write := func(query string) error {
		db := open(t, "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
		_, err := db.ExecContext(t.Context(), query)
		return err
	}
	return &database{name: "sqlite", url: "sqlite:" + path, disk: d, write: write,
		sql: open(t, "sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)")}
}

// newPostgres starts a server that survives being killed, for which its commits
// must have reached the system, and no more.
func newPostgres(t *testing.T) *database {
	server := databases.StartPostgreSQL(t, databases.Options{Settings: []string{"synchronous_commit=on", "full_page_writes=on"}})
	return newServer(t, "postgres", "pgx", server, server.URL)
}

// newMariaDB does the same.
func newMariaDB(t *testing.T) *database {
	server := databases.StartMariaDB(t, databases.Options{Settings: []string{"innodb-flush-log-at-trx-commit=2", "innodb-doublewrite=1"}})
	dsn, err := databases.MySQLDSN(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return newServer(t, "mariadb", "mysql", server, dsn)
}

func newServer(t *testing.T, name, driver string, server *databases.Server, dsn string) *database {
	db := &database{name: name, sql: open(t, driver, dsn), kill: server.Kill, start: server.Start}
	db.proxy, db.url = behind(t, server.URL)
	db.write = func(query string) error {
		_, err := db.sql.ExecContext(t.Context(), query)
		return err
	}
	return db
}

func open(t *testing.T, driver, dsn string) *sql.DB {
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

// behind puts a proxy before the server of a URL.
func behind(t *testing.T, text string) (*proxy.Proxy, string) {
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p := proxy.New(t, u.Host)
	u.Host = p.Address()
	return p, u.String()
}
