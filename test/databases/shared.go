package databases

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

type startFunc func(t testing.TB, options Options) (*Server, error)

// startPrivate starts a server that is removed when the test ends.
func startPrivate(t testing.TB, start startFunc, options Options) *Server {
	t.Helper()
	s, err := start(t, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.remove(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// sharedServer is the server that the tests of a binary share. It runs while a test uses it, or
// until the binary ends if TestMain calls Main. Without that, a test with many subtests should
// request a database itself, so that the server is not restarted for each subtest.
type sharedServer struct {
	variable string
	driver   string
	start    startFunc
	dsn      func(url string) (string, error)
	drop     string

	mu      sync.Mutex
	server  *Server // nil if no test uses it
	users   int
	created int
	kept    bool // the server runs until the binary ends
}

// Main runs the tests of a binary whose tests share servers one after the other: a shared server
// that was started once then runs until the last test has ended, because starting one takes a
// second. Main is called by TestMain, and returns the exit code.
func Main(m *testing.M) int {
	shared := []*sharedServer{sharedPostgres, sharedMariaDB}
	for _, s := range shared {
		s.kept = true
	}
	code := m.Run()
	for _, s := range shared {
		if err := s.removeKept(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

func (s *sharedServer) removeKept() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil
	}
	s.server.t = standardError{} // because the test that started it has ended
	return s.server.remove()
}

// database creates an empty database and drops it when the test ends.
func (s *sharedServer) database(t testing.TB) string {
	t.Helper()
	base, err := s.acquire(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.release(); err != nil {
			t.Error(err)
		}
	})
	name := fmt.Sprintf("vedette_test_%d_%d", os.Getpid(), s.nextNumber())
	if err := s.exec(base, "CREATE DATABASE "+name); err != nil {
		t.Fatal(s.explainError(err))
	}
	t.Cleanup(func() {
		if os.Getenv(s.variable) == "" {
			return // the database is removed with the server, and dropping one in PostgreSQL takes long
		}
		if err := s.exec(base, fmt.Sprintf(s.drop, name)); err != nil {
			t.Error(s.explainError(err))
		}
	})
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// explainError names the environment variable of the server that fails.
func (s *sharedServer) explainError(err error) error {
	if os.Getenv(s.variable) == "" {
		return err
	}
	return fmt.Errorf("%s must be the URL of a server where tests may create and drop databases: %w", s.variable, err)
}

func (s *sharedServer) nextNumber() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created++
	return s.created
}

func (s *sharedServer) acquire(t testing.TB) (string, error) {
	if serverURL := os.Getenv(s.variable); serverURL != "" {
		return serverURL, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		server, err := s.start(t, Options{})
		if err != nil {
			return "", err
		}
		s.server = server
	}
	s.users++
	return s.server.URL, nil
}

func (s *sharedServer) release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil { // the server is the environment's
		return nil
	}
	s.users--
	if s.users > 0 || s.kept {
		return nil
	}
	server := s.server
	s.server = nil
	return server.remove()
}

func (s *sharedServer) exec(serverURL, statement string) error {
	dsn, err := s.dsn(serverURL)
	if err != nil {
		return err
	}
	db, err := sql.Open(s.driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// writeFile writes a file in the server's directory, readable for its user.
func (s *Server) writeFile(name, text string) error {
	return os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644)
}

// Exec runs a statement on a database, without the code under test.
func Exec(serverURL, statement string) error {
	if strings.HasPrefix(serverURL, "mysql:") {
		return sharedMariaDB.exec(serverURL, statement)
	}
	return sharedPostgres.exec(serverURL, statement)
}
