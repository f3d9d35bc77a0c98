package databases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/vedette-io/vedette/test/ports"
)

const postgresVariable = "VEDETTE_TEST_POSTGRES"

// PostgreSQL returns the URL of an empty database, which is dropped when the test ends. All tests
// of a binary share one server.
func PostgreSQL(t testing.TB) string {
	t.Helper()
	return sharedPostgres.database(t)
}

var sharedPostgres = &sharedServer{
	variable: postgresVariable,
	driver:   "pgx",
	start:    startPostgres,
	dsn:      postgresDSN,
	drop:     "DROP DATABASE %s WITH (FORCE)",
}

// postgresDSN returns the URL, because the driver accepts it.
func postgresDSN(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "", errors.New("the URL must have the form postgres://USER:PASSWORD@HOST:5432/DATABASE, with special characters of the password written as %XX")
	}
	return text, nil
}

// StartPostgreSQL starts a server for one test, which may kill it.
func StartPostgreSQL(t testing.TB, options Options) *Server {
	t.Helper()
	return startPrivate(t, startPostgres, options)
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
	if err := s.prepare(filepath.Join(filepath.Dir(program), "initdb"), "-D", data, "-U", "vedette", "--auth=trust", "--encoding=UTF8",
		"--locale=C", "--no-sync"); err != nil {
		return nil, err
	}
	port, err := ports.Reserve()
	if err != nil {
		return nil, err
	}
	s.URL = fmt.Sprintf("postgres://vedette@127.0.0.1:%d/postgres?sslmode=disable", port)
	s.program, s.quit = program, syscall.SIGINT // PostgreSQL's fast shutdown
	s.args = []string{"-D", data, "-p", fmt.Sprint(port), "-h", "127.0.0.1", "-k", s.dir, "-c", "max_connections=200", "-c",
		"shared_buffers=128MB"}
	if !options.Durable {
		s.args = append(s.args, "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
	}
	for _, setting := range options.Settings {
		s.args = append(s.args, "-c", setting)
	}
	s.ping = func(ctx context.Context) error { return ping(ctx, "pgx", s.URL) }
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
