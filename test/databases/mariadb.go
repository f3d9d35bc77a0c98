package databases

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/vedette-io/vedette/test/ports"
)

// MariaDB returns the URL of an empty database, which is dropped when the test ends. All tests of a
// binary share one server. It is a MySQL server if the environment names one or its program.
func MariaDB(t testing.TB) string {
	t.Helper()
	return sharedMariaDB.database(t)
}

var sharedMariaDB = &sharedServer{
	variable: mysqlVariable,
	driver:   "mysql",
	start:    startMariaDB,
	dsn:      MySQLDSN,
	drop:     "DROP DATABASE %s",
}

// StartMariaDB starts a server for one test, which may kill it. It is a MySQL server if the
// environment names its program.
func StartMariaDB(t testing.TB, options Options) *Server {
	t.Helper()
	return startPrivate(t, startMariaDB, options)
}

func startMariaDB(t testing.TB, options Options) (*Server, error) {
	flavor, err := findMySQL()
	if err != nil {
		return nil, err
	}
	s, err := newServer(t, "mysql")
	if err != nil {
		return nil, err
	}
	if err := flavor.initialize(s, flavor.program); err != nil {
		return nil, err
	}
	// Repeated at each start, so it must be idempotent.
	const sql = "CREATE DATABASE IF NOT EXISTS vedette;\nCREATE USER IF NOT EXISTS vedette@'127.0.0.1' IDENTIFIED BY 'vedette';\nGRANT ALL ON *.* TO vedette@'127.0.0.1' WITH GRANT OPTION;\n"
	if err := s.writeFile("init.sql", sql); err != nil {
		return nil, err
	}
	port, err := ports.Reserve()
	if err != nil {
		return nil, err
	}
	s.URL = fmt.Sprintf("mysql://vedette:vedette@127.0.0.1:%d/vedette", port)
	s.program, s.quit = flavor.program, syscall.SIGTERM
	// in its own directory, because a server deletes all temporary tables that it finds
	s.args = []string{"--no-defaults", "--datadir=" + filepath.Join(s.dir, "data"), "--socket=" + filepath.Join(s.dir, "socket"),
		"--pid-file=" + filepath.Join(s.dir, "pid"), "--tmpdir=" + s.dir,
		"--bind-address=127.0.0.1", "--port=" + fmt.Sprint(port), "--max-connections=200", "--innodb-buffer-pool-size=128M",
		"--skip-name-resolve",
		"--init-file=" + filepath.Join(s.dir, "init.sql")}
	s.args = append(s.args, flavor.args...)
	if !options.Durable {
		s.args = append(s.args, "--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--innodb-doublewrite=0", "--sync-binlog=0")
	}
	for _, setting := range options.Settings {
		s.args = append(s.args, "--"+setting)
	}
	dsn, err := MySQLDSN(s.URL)
	if err != nil {
		return nil, err
	}
	s.ping = func(ctx context.Context) error { return ping(ctx, "mysql", dsn) }
	return s, s.start()
}
