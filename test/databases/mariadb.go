package databases

import (
	"context"
	"fmt"
	"net/url"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

const mysqlVariable = "VEDETTE_TEST_MYSQL"

// MariaDB returns the URL of an empty database, which is dropped with the test.
// All tests of a binary share one server. Where the environment names a MySQL
// server, it is that.
func MariaDB(t testing.TB) string {
	t.Helper()
	return sharedMariaDB.database(t)
}

var sharedMariaDB = &shared{
	variable: mysqlVariable,
	driver:   "mysql",
	start:    startMariaDB,
	dsn:      mysqlDSN,
	drop:     "DROP DATABASE %s",
}

// StartMariaDB starts a server for one test, which may kill it.
func StartMariaDB(t testing.TB, options Options) *Server {
	t.Helper()
	return private(t, startMariaDB, options)
}

func startMariaDB(t testing.TB, options Options) (*Server, error) {
	program, err := find(mysqlVariable, "/usr/sbin/mariadbd", "/opt/homebrew/opt/mariadb/bin/mariadbd")
	if err != nil {
		return nil, err
	}
	s, err := newServer(t, "mysql")
	if err != nil {
		return nil, err
	}
	if err := s.initMariaDB(); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s.URL = fmt.Sprintf("mysql://vedette:vedette@127.0.0.1:%d/vedette", port)
	s.program = program
	s.args = []string{"--no-defaults", "--datadir=" + filepath.Join(s.dir, "data"), "--socket=" + filepath.Join(s.dir, "socket"), "--pid-file=" + filepath.Join(s.dir, "pid"), "--tmpdir=" + s.dir, // a server deletes what temporary tables it finds there, whosever they are
		"--bind-address=127.0.0.1", "--port=" + fmt.Sprint(port), "--max-connections=200", "--innodb-buffer-pool-size=128M", "--skip-name-resolve",
		"--init-file=" + filepath.Join(s.dir, "init.sql")}
	if !options.Durable {
		s.args = append(s.args, "--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--innodb-doublewrite=0")
	}
	for _, setting := range options.Settings {
		s.args = append(s.args, "--"+setting)
	}
	dsn, err := mysqlDSN(s.URL)
	if err != nil {
		return nil, err
	}
	s.answers = func(ctx context.Context) error { return ping(ctx, "mysql", dsn) }
	return s, s.start()
}

// initMariaDB makes the system tables, and a file of what each start repeats.
func (s *Server) initMariaDB() error {
	install, err := find(mysqlVariable, "/usr/bin/mariadb-install-db", "/opt/homebrew/opt/mariadb/bin/mariadb-install-db")
	if err != nil {
		return err
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	systemUser := me.Username
	if s.account != nil {
		systemUser = "mysql"
	}
	err = s.prepare(install, "--no-defaults", "--datadir="+filepath.Join(s.dir, "data"), "--user="+systemUser, "--auth-root-authentication-method=normal", "--skip-test-db")
	if err != nil {
		return err
	}
	return s.writeFile("init.sql", "CREATE DATABASE IF NOT EXISTS vedette;\nCREATE USER IF NOT EXISTS vedette@'127.0.0.1' IDENTIFIED BY 'vedette';\nGRANT ALL ON *.* TO vedette@'127.0.0.1';\n")
}

// mysqlDSN turns a URL into what the driver takes.
func mysqlDSN(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	config := mysql.NewConfig()
	config.Net, config.Addr, config.DBName, config.User = "tcp", u.Host, strings.TrimPrefix(u.Path, "/"), u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Logger = &mysql.NopLogger{} // a server that is still starting is no news
	return config.FormatDSN(), nil
}
