package databases

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

const postgresVariable = "VEDETTE_TEST_POSTGRES"

// PostgreSQL returns the URL of an empty database, which is dropped with the
// test. All tests of a binary share one server.
func PostgreSQL(t testing.TB) string {
	t.Helper()
	return sharedPostgres.database(t)
}

var sharedPostgres = &shared{
	variable: postgresVariable,
	driver:   "pgx",
	start:    startPostgres,
	dsn:      func(url string) (string, error) { return url, nil },
	drop:     "DROP DATABASE %s WITH (FORCE)",
}

// StartPostgreSQL starts a server for one test, which may kill it.
func StartPostgreSQL(t testing.TB, options Options) *Server {
	t.Helper()
	return private(t, startPostgres, options)
}

func startPostgres(t testing.TB, options Options) (*Server, error) {
	program, err := find(postgresVariable, "/usr/lib/postgresql/*/bin/postgres", "/opt/homebrew/opt/postgresql*/bin/postgres")
	if err != nil {
		return nil, err
	}
	s, err := newServer(t, "postgres")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.dir, "data")
	if err := s.prepare(filepath.Join(filepath.Dir(program), "initdb"), "-D", data, "-U", "vedette", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s.URL = fmt.Sprintf("postgres://vedette@127.0.0.1:%d/postgres?sslmode=disable", port)
	s.program = program
	s.args = []string{"-D", data, "-p", fmt.Sprint(port), "-h", "127.0.0.1", "-k", s.dir, "-c", "max_connections=200", "-c", "shared_buffers=128MB"}
	if !options.Durable {
		s.args = append(s.args, "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
	}
	for _, setting := range options.Settings {
		s.args = append(s.args, "-c", setting)
	}
	s.answers = func(ctx context.Context) error { return ping(ctx, "pgx", s.URL) }
	return s, s.start()
}

func ping(ctx context.Context, driver, dsn string) error {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.PingContext(ctx)
}
