package convergence

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/databases"
)

// TestFailoverThatLosesCommits promotes a replica that lacks the last changes, which the server had confirmed to its agents. The
// server ends, as it must not go on with what it remembers, and is started again. The agents were not: they remember later marks than the
// database has, and have dropped the changes that were confirmed. They must continue from the marks of the database.
func TestFailoverThatLosesCommits(t *testing.T) {
	if *singleDB != "patroni" {
		t.Skip("takes a minute: run it with -db patroni, as `make replication` does")
	}
	binaries, err := controlplane.Build(t.Context(), os.Stderr)
	must(t, err)
	cluster := databases.StartPatroni(t, databases.PatroniOptions{EtcdProgram: binaries["etcd"]})
	cluster.AwaitReplicas(len(cluster.Nodes)-1, false)
	const name = "vedette"
	must(t, databases.Exec(cluster.Proxy.URL, "CREATE DATABASE "+name))
	u, err := url.Parse(cluster.Proxy.URL)
	must(t, err)
	u.Path = "/" + name
	db := &database{name: "patroni", url: u.String(), sql: openDB(t, "pgx", u.String())}
	s := singleAgent
	s.verify = 3600 // so that no verification heals what a wrong mark would lose
	runInWorld(t, db, s, func(t *testing.T, w *world) {
		cluster.AwaitReplicas(len(cluster.Nodes)-1, false)
		primary := cluster.Primary()
		primary.StopReplication(t)
		const lost = 40
		w.create("lost", lost)
		w.awaitConvergence() // so the server has confirmed all of it
		objects := w.count(t.Context(), `SELECT COUNT(*) FROM objects`)
		primary.Kill()
		w.awaitServerEnd()
		if left := countRows(t, db.sql); left > objects-lost {
			t.Fatalf("the new primary has %d of %d objects: nothing was lost, so the test has tested nothing", left, objects)
		}
		w.server.Start()
		w.create("later", lost)
		t.Logf("converged %v after the failover", w.awaitConvergence())
		w.checkNoDrift(w.accounts[0])
	})
}

// awaitServerEnd waits until the server ends by itself.
func (w *world) awaitServerEnd() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), convergenceTimeout)
	defer cancel()
	for w.server.Exited() == nil {
		sleep(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			w.t.Fatal("the server goes on with a database that lacks what it has confirmed, want that it ends")
		}
	}
	w.server.Stop() // it has ended, which was expected
}

// countRows counts the objects of a database that may be failing over, for which it waits.
func countRows(t *testing.T, db *sql.DB) (n int64) {
	t.Helper()
	for {
		err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM objects`).Scan(&n)
		if err == nil || t.Context().Err() != nil {
			must(t, err)
			return n
		}
	}
}
