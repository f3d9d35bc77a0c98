package membership_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/membership"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/test/databases"
	"github.com/vedette-io/vedette/test/logbuffer"
)

// server is a server that shares a database, as far as membership is concerned.
type server struct {
	*store.Store
	*membership.Membership

	t     *testing.T
	log   *logbuffer.Buffer
	ended chan vedette.ServerID
}

func start(t *testing.T, url string, id vedette.ServerID) *server {
	t.Helper()
	st, err := store.Open(t.Context(), sqldb.Config{URL: url, Server: id, Host: "h", Sharing: &sqldb.Sharing{PublicKey: []byte{}}})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Store: st, t: t, log: &logbuffer.Buffer{}, ended: make(chan vedette.ServerID, 10)}
	s.Membership = membership.New(membership.Config{Self: id, Store: st, Log: slog.New(slog.NewTextHandler(s.log, nil)),
		OnEnded: func(id vedette.ServerID) { s.ended <- id },
		Release: func(ctx context.Context) error { _, err := st.ReleaseEnded(ctx); return err }})
	if err := s.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// run renews the lease and watches the others, until stop is called.
func (s *server) run() (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := s.KeepLease(ctx); err != nil {
			s.t.Error(err)
		}
	})
	parts.Go(func() {
		if err := s.Run(ctx); err != nil {
			s.t.Error(err)
		}
	})
	return func() { cancel(); parts.Wait() }
}

func (s *server) account(name vedette.AccountName) registry.Account {
	s.t.Helper()
	a, err := s.Account(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// TestServersThatEndLoseTheirAccounts has three servers. One stops, and one freezes.
func TestServersThatEndLoseTheirAccounts(t *testing.T) {
	for name, newURL := range map[string]func(*testing.T) string{
		"PostgreSQL": func(t *testing.T) string { return databases.PostgreSQL(t) },
		"MariaDB":    func(t *testing.T) string { return databases.MariaDB(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := newURL(t)
			stopping, frozen := start(t, url, "stopping"), start(t, url, "frozen")
			terms := map[*server]vedette.Term{}
			for _, s := range []*server{stopping, frozen} {
				id := s.Current()
				if len(id) == 0 {
					t.Fatal("no server is known")
				}
				name := vedette.AccountName("of-" + s.ServerToken())
				if _, err := s.Register(t.Context(), vedette.Account{Name: name, Cluster: vedette.Cluster{UID: "u"}}); err != nil {
					t.Fatal(err)
				}
				server := vedette.ServerID("stopping")
				if s == frozen {
					server = "frozen"
				}
				term, err := s.Acquire(t.Context(), name, registry.CacherClaim{Agent: "a", Server: server})
				if err != nil {
					t.Fatal(err)
				}
				terms[s] = term
			}
			ofStopping, ofFrozen := vedette.AccountName("of-"+stopping.ServerToken()), vedette.AccountName("of-"+frozen.ServerToken())
			s := start(t, url, "s")
			if !s.IsAlive(t.Context(), "stopping") || !s.IsAlive(t.Context(), "frozen") || s.IsAlive(t.Context(), "never") {
				t.Errorf("got servers %v", s.Current())
			}
			for token, want := range map[string]bool{frozen.ServerToken(): true, stopping.ServerToken(): false} {
				if got := s.IsProcessAlive(t.Context(), "frozen", func(of string) bool { return of == token }); got != want {
					t.Errorf("process %s of a server: got alive %v, want %v", token, got, want)
				}
			}
			defer s.run()()
			stopFrozen := frozen.run()
			if err := stopping.Close(); err != nil {
				t.Fatal(err)
			}
			if got := <-s.ended; got != "stopping" {
				t.Fatalf("%s has ended, want the one that stops", got)
			}
			if s.IsAlive(t.Context(), "stopping") {
				t.Error("a server that has stopped is alive")
			}
			await(t, "the release of the account of the server that has stopped", func() bool { return s.account(ofStopping).Holder == "" })
			if a := s.account(ofStopping); a.Term <= terms[stopping] || a.Orphaned.IsZero() {
				t.Errorf("got %+v, want a later term", a)
			}
			if a := s.account(ofFrozen); a.Holder != "a" || a.Term != terms[frozen] {
				t.Errorf("got %+v, want that a server that is alive keeps its account", a)
			}
			stopFrozen()
			if got := <-s.ended; got != "frozen" {
				t.Fatalf("%s has ended, want the one that is frozen", got)
			}
			await(t, "the release of the account of the frozen server", func() bool { return s.account(ofFrozen).Holder == "" })
			frozen.Close()
		})
	}
}

// TestNewServersAreAlive asks for a server that has started since the servers were read, before the next read.
func TestNewServersAreAlive(t *testing.T) {
	url := databases.PostgreSQL(t)
	s := start(t, url, "s")
	defer s.Close()
	other := start(t, url, "new")
	defer other.Close()
	if _, known := s.Current()["new"]; known {
		t.Fatal("the new server is known already")
	}
	await(t, "a server that has started to be alive for accounts, without a read by the way", func() bool { return s.IsAlive(t.Context(), "new") })
	newer := start(t, url, "newer")
	defer newer.Close()
	if !s.IsProcessAlive(t.Context(), "newer", func(token string) bool { return token == newer.ServerToken() }) {
		t.Error("a process that has just started is not alive")
	}
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s did not happen", what)
		}
	}
}
