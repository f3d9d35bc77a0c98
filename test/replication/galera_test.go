package replication_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/server/store/storetest/suite"
	"github.com/vedette-io/vedette/test/databases"
)

func TestGalera(t *testing.T) {
	cluster := databases.StartGalera(t, databases.Options{})
	t.Run("suite", func(t *testing.T) {
		onlyIfAll(t)
		suite.Run(t, func(t *testing.T) *store.Store { return storetest.Open(t, cluster.Database(0)) })
	})
	t.Run("suite on two databases", func(t *testing.T) {
		onlyIfAll(t)
		suite.Run(t, func(t *testing.T) *store.Store {
			second := sqldb.Shard{Name: "b", URL: cluster.Database(1)}
			return storetest.OpenConfig(t, sqldb.Config{URL: cluster.Database(0), Shards: []sqldb.Shard{second}})
		})
	})
	t.Run("starts at all nodes migrate once", func(t *testing.T) {
		t.Parallel()
		name := nameOf(cluster.Database(0))
		testConcurrentStarts(t, func(n int) string { return cluster.At(n%len(cluster.Nodes), name) })
	})
	t.Run("late writers are refused at other nodes", func(t *testing.T) { t.Parallel(); testLateWriters(t, cluster) })
	t.Run("similar names at two nodes", func(t *testing.T) { t.Parallel(); testSimilarNames(t, cluster) })
	t.Run("reads see what another node has committed", func(t *testing.T) { t.Parallel(); testReadsAcrossNodes(t, cluster) })
	t.Run("account moves between nodes", func(t *testing.T) { t.Parallel(); testAccountMoves(t, cluster) })
}

// nameOf returns the name of a database.
func nameOf(databaseURL string) string { return databaseURL[strings.LastIndex(databaseURL, "/")+1:] }

// openAtAllNodes opens a new database once at each node.
func openAtAllNodes(t *testing.T, cluster *databases.Galera) []*store.Store {
	t.Helper()
	url := cluster.Database(0)
	stores := make([]*store.Store, len(cluster.Nodes))
	for i := range cluster.Nodes {
		stores[i] = storetest.Open(t, cluster.At(i, nameOf(url)))
	}
	return stores
}

// testConcurrentStarts opens a new database several times at the same time, by the URLs of numbers.
func testConcurrentStarts(t *testing.T, url func(n int) string) {
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			s, err := store.Open(t.Context(), sqldb.Config{URL: url(i)})
			if err == nil {
				err = s.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

var pods = vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}

func declare(t *testing.T, s *store.Store, term vedette.Term) {
	t.Helper()
	if _, err := s.Declare(t.Context(), "prod", term, []commit.DeclaredFeed{{Feed: pods}}, nil); err != nil {
		t.Fatal(err)
	}
}

func acquire(t *testing.T, s *store.Store) vedette.Term {
	t.Helper()
	term, err := s.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "agent", Server: "server"})
	if err != nil {
		t.Fatal(err)
	}
	return term
}

func register(t *testing.T, s *store.Store) {
	t.Helper()
	if _, err := s.Register(t.Context(), vedette.Account{Name: "prod"}); err != nil {
		t.Fatal(err)
	}
}

func podNamed(name, version string) vedette.Object {
	return vedette.Object{Key: vedette.Key{Kind: pods.Kind, Namespace: "n", Name: name}, ResourceVersion: version, Body: []byte(`{"version":` + version + `}`)}
}

func commitPod(t *testing.T, s *store.Store, term vedette.Term, name, version string) error {
	t.Helper()
	_, err := s.Commit(t.Context(), commit.Batch{Account: "prod", Term: term, Upserts: []vedette.Object{podNamed(name, version)}})
	return err
}

// testLateWriters commits at one node while the account is acquired at another. Whatever was committed in the old term must be there as
// soon as the account is acquired: a commit that comes later is refused.
func testLateWriters(t *testing.T, cluster *databases.Galera) {
	stores := openAtAllNodes(t, cluster)
	register(t, stores[0])
	term := acquire(t, stores[0])
	declare(t, stores[0], term)
	refused := 0
	for round := range 150 {
		writer, next := stores[round%2], stores[(round+1)%2]
		var wg sync.WaitGroup
		var results [3]error
		for i := range results {
			wg.Go(func() { results[i] = commitPod(t, writer, term, fmt.Sprintf("pod-%d-%d", round, i), "1") })
		}
		term = acquire(t, next)
		seen := map[int]bool{}
		for i := range results {
			_, version, err := next.UID(t.Context(), "prod", podNamed(fmt.Sprintf("pod-%d-%d", round, i), "").Key)
			if err != nil {
				t.Fatal(err)
			}
			seen[i] = version != ""
		}
		wg.Wait()
		for i, err := range results {
			switch {
			case err != nil && !errors.Is(err, registry.ErrTerm):
				t.Fatalf("round %d: got %v, want %v", round, err, registry.ErrTerm)
			case err != nil:
				refused++
			case !seen[i]:
				t.Fatalf("round %d: commit %d succeeded in an old term, after the account was acquired at another node", round, i)
			}
		}
	}
	if refused == 0 {
		t.Error("no commit was refused, so the test has tested nothing")
	}
}

// testSimilarNames registers two names at two nodes that differ by case only.
func testSimilarNames(t *testing.T, cluster *databases.Galera) {
	stores := openAtAllNodes(t, cluster)
	for round := range 60 {
		names := []vedette.AccountName{vedette.AccountName(fmt.Sprint("shop-", round)), vedette.AccountName(fmt.Sprint("Shop-", round))}
		var wg sync.WaitGroup
		var results [2]error
		for i := range names {
			wg.Go(func() { _, results[i] = stores[i].Register(t.Context(), vedette.Account{Name: names[i]}) })
		}
		wg.Wait()
		if (results[0] == nil) == (results[1] == nil) {
			t.Fatalf("round %d: got %v and %v, want one of two similar names", round, results[0], results[1])
		}
		for _, err := range results {
			if err != nil && vedette.KindOf(err) != vedette.Conflict {
				t.Fatalf("round %d: got %v, want an error of kind %s", round, err, vedette.Conflict)
			}
		}
	}
}

// testReadsAcrossNodes reads at one node what another one has just committed.
func testReadsAcrossNodes(t *testing.T, cluster *databases.Galera) {
	stores := openAtAllNodes(t, cluster)
	register(t, stores[0])
	term := acquire(t, stores[0])
	declare(t, stores[0], term)
	for round := range 300 {
		version := fmt.Sprint(round + 1)
		if err := commitPod(t, stores[0], term, "pod", version); err != nil {
			t.Fatal(err)
		}
		for i, s := range stores[1:] {
			if _, got, err := s.UID(t.Context(), "prod", podNamed("pod", "").Key); err != nil || got != version {
				t.Fatalf("node %d: got version %s, %v, want %s", i+1, got, err, version)
			}
		}
	}
}

// testAccountMoves moves an account from node to node, with enough objects for a dictionary that the next node has to read.
func testAccountMoves(t *testing.T, cluster *databases.Galera) {
	stores := openAtAllNodes(t, cluster)
	register(t, stores[0])
	for round := range 9 {
		s := stores[round%len(stores)]
		term := acquire(t, s)
		declare(t, s, term)
		var objects []vedette.Object
		for n := range 40 {
			o := podNamed(fmt.Sprint("pod-", n), fmt.Sprint(round+1))
			o.Labels = map[string]string{"turn": fmt.Sprint(round)}
			o.Body = []byte(strings.Repeat(fmt.Sprintf(`{"name":"pod-%d","turn":%d}`, n, round), 10))
			objects = append(objects, o)
		}
		if _, err := s.Commit(t.Context(), commit.Batch{Account: "prod", Term: term, Upserts: objects}); err != nil {
			t.Fatal(err)
		}
		other := stores[(round+1)%len(stores)]
		for _, o := range objects {
			stored, err := other.Object(t.Context(), "prod", o.Key)
			if err != nil || string(stored.Body) != string(o.Body) {
				t.Fatalf("round %d: got %q, %v, want %q", round, stored.Body, err, o.Body)
			}
		}
	}
}
