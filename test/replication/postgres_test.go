package replication_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/server/store/storetest/suite"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/databases"
)

// TestPgBouncer runs the suite through a pooler that gives each transaction another connection.
func TestPgBouncer(t *testing.T) {
	server := databases.StartPostgreSQL(t, databases.Options{Settings: []string{"max_connections=1000"}})
	pooler := databases.StartPgBouncer(t, server.URL)
	var created atomic.Int64
	create := func(t *testing.T) string { return createDatabase(t, server.URL, pooler.URL, created.Add(1)) }
	t.Run("suite", func(t *testing.T) {
		onlyIfAll(t)
		suite.Run(t, func(t *testing.T) *store.Store { return storetest.Open(t, create(t)) })
	})
	t.Run("starts at the same time migrate once", func(t *testing.T) {
		url := create(t)
		testConcurrentStarts(t, func(int) string { return url })
	})
	t.Run("locks of lost connections", func(t *testing.T) {
		warning := func() bool {
			var log bytes.Buffer
			s, err := store.Open(t.Context(), sqldb.Config{URL: create(t), Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if !strings.Contains(log.String(), "a connection pooler is in front of the PostgreSQL server") {
				t.Errorf("got log %q, want that a pooler was found", log.String())
			}
			return strings.Contains(log.String(), "transactions of lost connections may keep their locks")
		}
		if !warning() {
			t.Error("the user has no time limit, and the log does not say so")
		}
		if err := databases.Exec(server.URL, "ALTER ROLE vedette SET idle_in_transaction_session_timeout = '10s'"); err != nil {
			t.Fatal(err)
		}
		if warning() {
			t.Error("the user has a time limit, and the log says that there is none")
		}
	})
	t.Run("objects", func(t *testing.T) {
		s := storetest.Open(t, create(t))
		register(t, s)
		term := acquire(t, s)
		declare(t, s, term)
		var wg sync.WaitGroup
		for n := range 50 { // more than PgBouncer has connections, so that they are shared
			wg.Go(func() {
				name := fmt.Sprint("pod-", n)
				if err := commitPod(t, s, term, name, "1"); err != nil {
					t.Error(err)
				}
				if _, version, err := s.UID(t.Context(), "prod", podNamed(name, "").Key); err != nil || version != "1" {
					t.Errorf("%s: got version %q, %v, want 1", name, version, err)
				}
			})
		}
		wg.Wait()
	})
}

// createDatabase creates an empty database at a server, and returns its URL.
func createDatabase(t *testing.T, directURL, serverURL string, number int64) string {
	t.Helper()
	name := fmt.Sprint("vedette_test_", number)
	if err := databases.Exec(directURL, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(serverURL, "/postgres?", "/"+name+"?", 1)
}

func startPatroni(t *testing.T, options databases.PatroniOptions) *databases.Patroni {
	t.Helper()
	binaries, err := controlplane.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	options.EtcdProgram = binaries["etcd"]
	p := databases.StartPatroni(t, options)
	p.AwaitReplicas(len(p.Nodes)-1, options.Synchronous)
	return p
}

// TestPatroni runs the suite on the primary of several servers, behind HAProxy.
func TestPatroni(t *testing.T) {
	onlyIfAll(t)
	cluster := startPatroni(t, databases.PatroniOptions{Synchronous: true})
	var created atomic.Int64
	suite.Run(t, func(t *testing.T) *store.Store {
		return storetest.Open(t, createDatabase(t, cluster.Proxy.URL, cluster.Proxy.URL, created.Add(1)))
	})
}
