package databases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vedette-io/vedette/test/ports"
)

// haproxyConfig leads to the server whose check succeeds. Sessions with one that fails are closed, because they would wait for it.
// docs/scaling.md has the same for production.
const haproxyConfig = `global
    maxconn 1000
    external-check
    insecure-fork-wanted
defaults
    mode tcp
    timeout connect 2s
    timeout client 30m
    timeout server 30m
    timeout check 1s
listen database
    bind 127.0.0.1:%d
    %s
    default-server inter 300ms fastinter 100ms fall 2 rise 1 %s%s
`

const (
	haproxyPatroniCheck = "option httpchk OPTIONS /primary\n    http-check expect status 200"
	haproxyOnDown       = "on-marked-down shutdown-sessions"
	haproxyOnUp         = " on-marked-up shutdown-backup-sessions"
)

// startPatroniProxy starts an HAProxy that leads to the primary, by what Patroni says.
func startPatroniProxy(t testing.TB, nodes []*PatroniNode) (*Server, error) {
	lines := ""
	for i, node := range nodes {
		u, err := url.Parse(node.URL)
		if err != nil {
			return nil, err
		}
		lines += fmt.Sprintf("    server node%d %s check port %s\n", i, u.Host, node.api[strings.LastIndex(node.api, ":")+1:])
	}
	s, port, err := startHAProxy(t, func(string) string { return haproxyPatroniCheck }, "", lines)
	if err != nil {
		return nil, err
	}
	s.URL = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	s.ping = func(ctx context.Context) error { return pingPrimary(ctx, s.URL) }
	return s, s.start()
}

// pingPrimary returns an error until a proxy leads to the primary only: until its first checks have ended, HAProxy takes all servers for
// healthy and uses them in turn.
func pingPrimary(ctx context.Context, serverURL string) error {
	db, err := sql.Open("pgx", serverURL)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxIdleConns(-1) // each query has a connection of its own
	for range 2 * patroniNodes {
		var isReplica bool
		if err := db.QueryRowContext(ctx, `SELECT pg_is_in_recovery()`).Scan(&isReplica); err != nil {
			return err
		}
		if isReplica {
			return errors.New("the proxy leads to a replica")
		}
	}
	return nil
}

// StartGaleraProxy starts an HAProxy that leads to the first node, and to another one while that is down.
func StartGaleraProxy(t testing.TB, cluster *Galera) *Server {
	t.Helper()
	lines := ""
	for i, node := range cluster.Nodes {
		u, err := url.Parse(node.URL)
		if err != nil {
			t.Fatal(err)
		}
		backup := ""
		if i > 0 {
			backup = " backup"
		}
		lines += fmt.Sprintf("    server node%d %s check%s\n", i, u.Host, backup)
	}
	return startPrivate(t, func(t testing.TB, _ Options) (*Server, error) {
		s, port, err := startHAProxy(t, func(dir string) string { return "option external-check\n    external-check command " + dir + "/check" }, haproxyOnUp, lines)
		if err != nil {
			return nil, err
		}
		//nolint:gosec // HAProxy executes it
		if err := os.WriteFile(filepath.Join(s.dir, "check"), []byte(galeraCheck), 0o755); err != nil {
			return nil, err
		}
		s.URL = fmt.Sprintf("mysql://vedette:vedette@127.0.0.1:%d/vedette", port)
		dsn, err := MySQLDSN(s.URL)
		if err != nil {
			return nil, err
		}
		s.ping = func(ctx context.Context) error { return ping(ctx, "mysql", dsn) }
		return s, s.start()
	}, Options{})
}

// galeraCheck succeeds for a node that belongs to the majority. HAProxy's own checks only find whether a server answers. Its arguments
// are the address of the proxy and that of the node.
const galeraCheck = `#!/bin/sh
state=$(PATH=/usr/bin:/bin timeout 1 mariadb --host="$3" --port="$4" --user=vedette --password=vedette --batch --skip-column-names \
    --execute="SHOW STATUS LIKE 'wsrep_ready'")
[ "$state" = "wsrep_ready	ON" ]
`

// startHAProxy prepares an HAProxy. check returns how servers are checked, given the directory of its files.
func startHAProxy(t testing.TB, check func(dir string) string, onUp, servers string) (s *Server, port int, err error) {
	program, err := findForSeveralMachines("/usr/sbin/haproxy")
	if err != nil {
		return nil, 0, err
	}
	if s, err = newServer(t, "postgres"); err != nil {
		return nil, 0, err
	}
	if port, err = ports.Reserve(); err != nil {
		return nil, 0, err
	}
	if err := s.writeFile("haproxy.cfg", fmt.Sprintf(haproxyConfig, port, check(s.dir), haproxyOnDown, onUp)+servers); err != nil {
		return nil, 0, err
	}
	s.program, s.quit = program, syscall.SIGTERM
	s.args = []string{"-db", "-f", filepath.Join(s.dir, "haproxy.cfg")}
	return s, port, nil
}

// pgbouncerConfig gives each transaction another connection. What it keeps of a session is its default.
// Connections end soon, because each test has a database of its own.
const pgbouncerConfig = `[databases]
* = host=%[1]s port=%[2]s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %[3]d
unix_socket_dir = %[4]s
auth_type = trust
auth_file = %[4]s/users
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
server_login_retry = 1
server_idle_timeout = 1
`

// StartPgBouncer starts a pooler in transaction mode in front of a server. Its URL leads to the same database as that of the server.
func StartPgBouncer(t testing.TB, serverURL string) *Server {
	t.Helper()
	return startPrivate(t, func(t testing.TB, _ Options) (*Server, error) {
		program, err := findForSeveralMachines("/usr/sbin/pgbouncer")
		if err != nil {
			return nil, err
		}
		s, err := newServer(t, "postgres")
		if err != nil {
			return nil, err
		}
		u, err := url.Parse(serverURL)
		if err != nil {
			return nil, err
		}
		port, err := ports.Reserve()
		if err != nil {
			return nil, err
		}
		if err := s.writeFile("pgbouncer.ini", fmt.Sprintf(pgbouncerConfig, u.Hostname(), u.Port(), port, s.dir)); err != nil {
			return nil, err
		}
		if err := s.writeFile("users", fmt.Sprintf("%q \"\"\n", u.User.Username())); err != nil {
			return nil, err
		}
		u.Host = fmt.Sprintf("127.0.0.1:%d", port)
		s.URL = u.String()
		s.program, s.quit = program, syscall.SIGINT
		s.args = []string{filepath.Join(s.dir, "pgbouncer.ini")}
		// By the simple protocol, because others need what a pooler does not keep.
		pingURL := *u
		query := pingURL.Query()
		query.Set("default_query_exec_mode", "simple_protocol")
		pingURL.RawQuery = query.Encode()
		s.ping = func(ctx context.Context) error { return ping(ctx, "pgx", pingURL.String()) }
		return s, s.start()
	}, Options{})
}
