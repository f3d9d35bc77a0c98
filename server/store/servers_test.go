package store_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/server/store/storetest/suite"
	"github.com/vedette-io/vedette/test/databases"
)

func TestPostgreSQL(t *testing.T) {
	suite.Run(t, func(t *testing.T) *store.Store { return storetest.Open(t, databases.PostgreSQL(t)) })
}

func TestMariaDB(t *testing.T) {
	suite.Run(t, func(t *testing.T) *store.Store { return storetest.Open(t, databases.MariaDB(t)) })
}

// onSharedDatabases runs a test on databases that several of our servers can share, in parallel.
func onSharedDatabases(t *testing.T, test func(t *testing.T, databaseURL string)) {
	t.Parallel()
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); test(t, databases.PostgreSQL(t)) })
	t.Run("MariaDB", func(t *testing.T) { t.Parallel(); test(t, databases.MariaDB(t)) })
}

func TestConcurrentStartsMigrateOnce(t *testing.T) {
	onSharedDatabases(t, func(t *testing.T, dbURL string) {
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				s, err := store.Open(t.Context(), sqldb.Config{URL: dbURL})
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

func TestAccountMovesBetweenServers(t *testing.T) {
	onSharedDatabases(t, func(t *testing.T, dbURL string) {
		one, two := storetest.Open(t, dbURL), storetest.Open(t, dbURL)
		pods := vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}
		declared := []commit.DeclaredFeed{{Feed: pods, Resource: vedette.Resource{Kind: pods.Kind, Version: "v1", Plural: "pods"}}}
		if _, err := one.Register(t.Context(), vedette.Account{Name: "prod"}); err != nil {
			t.Fatal(err)
		}
		var old vedette.Term
		for round := range 6 {
			s, other := one, two
			if round%2 == 1 {
				s, other = two, one
			}
			term, err := s.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "agent", Server: "server"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Declare(t.Context(), "prod", term, declared, nil); err != nil {
				t.Fatal(err)
			}
			var objects []vedette.Object
			for n := range 40 { // enough for a dictionary, which the other server has not read yet
				objects = append(objects, vedette.Object{Key: vedette.Key{Kind: pods.Kind, Namespace: "n", Name: fmt.Sprint("pod-", n)}, ResourceVersion: fmt.Sprint(round),
					Labels: map[string]string{"turn": fmt.Sprint(round)}, Body: []byte(strings.Repeat(fmt.Sprintf(`{"name":"pod-%d","turn":%d}`, n, round), 10))})
			}
			if _, err := s.Commit(t.Context(), commit.Batch{Account: "prod", Term: term, Upserts: objects}); err != nil {
				t.Fatal(err)
			}
			if _, err := other.Commit(t.Context(), commit.Batch{Account: "prod", Term: old, Upserts: objects}); !errors.Is(err, registry.ErrTerm) {
				t.Fatalf("the former server: got %v, want %v", err, registry.ErrTerm)
			}
			page, err := other.Objects(t.Context(), read.Query{Bodies: true, Selector: fmt.Sprint("turn=", round)})
			if err != nil || len(page.Items) != len(objects) {
				t.Fatalf("the other server: got %d objects, %v, want %d", len(page.Items), err, len(objects))
			}
			old = term
		}
	})
}

func TestPostgreSQLRestart(t *testing.T) {
	testRestart(t, databases.StartPostgreSQL(t, databases.Options{Durable: true}))
}

func TestMariaDBRestart(t *testing.T) {
	testRestart(t, databases.StartMariaDB(t, databases.Options{Durable: true}))
}

// testRestart kills the server between commits. Everything that was committed is there afterwards,
// and every error in between is vedette.Unavailable.
func testRestart(t *testing.T, server *databases.Server) {
	s := storetest.Open(t, server.URL)
	term := registerAccount(t, s)
	committed := 0
	for range 3 {
		for range 5 {
			if err := commitOne(t, s, term, committed); err != nil {
				t.Fatal(err)
			}
			committed++
		}
		server.Kill()
		if err := commitOne(t, s, term, committed); vedette.KindOf(err) != vedette.Unavailable {
			t.Errorf("commit without a server: got %v, want an error of kind %s", err, vedette.Unavailable)
		}
		if err := s.Ping(t.Context()); vedette.KindOf(err) != vedette.Unavailable {
			t.Errorf("ping without a server: got %v, want an error of kind %s", err, vedette.Unavailable)
		}
		if _, err := store.Open(t.Context(), sqldb.Config{URL: server.URL}); vedette.KindOf(err) != vedette.Unavailable {
			t.Errorf("open without a server: got %v, want an error of kind %s", err, vedette.Unavailable)
		}
		server.Start()
		waitForStore(t, s)
	}
	page, err := s.Objects(t.Context(), read.Query{})
	if err != nil || len(page.Items) != committed || page.Total != int64(committed) {
		t.Errorf("got %d objects, total %d, %v, want %d", len(page.Items), page.Total, err, committed)
	}
}

func TestServersKilledWhileCommitting(t *testing.T) {
	t.Parallel()
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		testKilled(t, databases.StartPostgreSQL(t, databases.Options{Durable: true}))
	})
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		testKilled(t, databases.StartMariaDB(t, databases.Options{Durable: true}))
	})
}

// testKilled kills the server repeatedly while batches are committed one after the other, and
// retried if they fail. After each restart every object of a successful commit is there, and there
// once.
func testKilled(t *testing.T, server *databases.Server) {
	s := storetest.Open(t, server.URL)
	term := registerAccount(t, s)
	const kills, between = 4, 25
	done := make(chan int)
	go func() {
		defer close(done)
		for n := 0; n < kills*between; {
			switch err := commitOne(t, s, term, n); {
			case err == nil:
				n++
				select {
				case done <- n:
				case <-t.Context().Done():
				}
			case vedette.KindOf(err) != vedette.Unavailable || t.Context().Err() != nil:
				t.Errorf("commit %d: got %v, want an error of kind %s", n, err, vedette.Unavailable)
				return
			}
		}
	}()
	for n := range done {
		if n%between != 0 || n == kills*between {
			continue
		}
		server.Kill()
		server.Start()
		waitForStore(t, s)
		for i := range n {
			if _, err := s.Object(t.Context(), "prod", vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "n", Name: fmt.Sprint(i)}); err != nil {
				t.Errorf("object %d of %d that were committed before kill %d: got %v, want the object", i, n, n/between, err)
			}
		}
	}
	page, err := s.Objects(t.Context(), read.Query{})
	if err != nil || page.Total != kills*between || len(page.Items) != kills*between {
		t.Errorf("got %d objects, total %d, %v, want %d", len(page.Items), page.Total, err, kills*between)
	}
}

// waitForStore waits until a store has noticed that its connections are closed. Each connection
// may take one try.
func waitForStore(t *testing.T, s *store.Store) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for s.Ping(t.Context()) != nil {
		if time.Now().After(deadline) {
			t.Fatal("got errors for a minute, want a working store")
		}
	}
}

func registerAccount(t *testing.T, s *store.Store) vedette.Term {
	t.Helper()
	if _, err := s.Register(t.Context(), vedette.Account{Name: "prod"}); err != nil {
		t.Fatal(err)
	}
	term, err := s.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "agent", Server: "server"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Declare(t.Context(), "prod", term, []commit.DeclaredFeed{{Feed: vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}}}, nil); err != nil {
		t.Fatal(err)
	}
	return term
}

func commitOne(t *testing.T, s *store.Store, term vedette.Term, n int) error {
	t.Helper()
	_, err := s.Commit(t.Context(), commit.Batch{Account: "prod", Term: term, Upserts: []vedette.Object{
		{Key: vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "n", Name: fmt.Sprint(n)}, ResourceVersion: "1", Labels: map[string]string{"n": fmt.Sprint(n)}}}})
	return err
}

func TestWrongPasswordIsInvalid(t *testing.T) {
	u := parseURL(t, databases.MariaDB(t))
	u.User = url.UserPassword(u.User.Username(), "wrong-one")
	_, err := store.Open(t.Context(), sqldb.Config{URL: u.String()})
	if vedette.KindOf(err) != vedette.Invalid || strings.Contains(err.Error(), "wrong-one") {
		t.Errorf("got %v, want an error of kind %s without the password", err, vedette.Invalid)
	}
}

func TestLabelsetIDsBeyond32Bits(t *testing.T) {
	dbURL := databases.PostgreSQL(t)
	s := storetest.Open(t, dbURL)
	term := registerAccount(t, s)
	if err := databases.Exec(dbURL, `ALTER TABLE labelsets ALTER COLUMN id RESTART WITH 5000000000`); err != nil {
		t.Fatal(err)
	}
	if err := commitOne(t, s, term, 1); err != nil {
		t.Fatal(err)
	}
	page, err := s.Objects(t.Context(), read.Query{Selector: "n=1"})
	if err != nil || len(page.Items) != 1 || page.Items[0].Labels["n"] != "1" {
		t.Errorf("got %+v, %v, want one object with label n=1", page.Items, err)
	}
}
