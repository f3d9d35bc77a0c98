package replication_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/test/databases"
)

// load commits objects of one account one after the other, and tries each until it succeeds. It opens the store again when the history of
// the database changes, as a server does that is started again.
type load struct {
	t         *testing.T
	url       string
	committed chan int // how many objects are committed; closed when the load has ended

	mu       sync.Mutex
	store    *store.Store
	term     vedette.Term
	restarts int
}

const loadTimeout = 2 * time.Minute // for one commit, or for a store to open

func startLoad(t *testing.T, url string, objects int) *load {
	t.Helper()
	l := &load{t: t, url: url, committed: make(chan int)}
	if err := l.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.store.Close(); err != nil {
			t.Error(err)
		}
	})
	go func() {
		defer close(l.committed)
		for n := range objects {
			if err := l.commit(n); err != nil {
				t.Errorf("object %d: %v", n, err)
				return
			}
			select {
			case l.committed <- n + 1:
			case <-t.Context().Done():
				return
			}
		}
	}()
	return l
}

// open opens the store and makes this process the cacher.
func (l *load) open(ctx context.Context) error {
	s, err := store.Open(ctx, sqldb.Config{URL: l.url})
	if err != nil {
		return err
	}
	l.mu.Lock()
	if l.store != nil {
		_ = l.store.Close() // its connections are broken
	}
	l.store = s
	l.mu.Unlock()
	if _, err := s.Register(ctx, vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "one"}}); err != nil {
		return err
	}
	l.term = acquire(l.t, s)
	declare(l.t, s, l.term)
	return nil
}

// commit commits an object. Every error on the way must say that the database does not answer for now.
func (l *load) commit(n int) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(loadTimeout); ; <-tick.C {
		err := commitPod(l.t, l.store, l.term, fmt.Sprint("pod-", n), "1")
		if errors.Is(err, sqldb.ErrHistory) {
			l.restarts++
			err = l.open(l.t.Context())
			for ; err != nil && time.Now().Before(deadline); err = l.open(l.t.Context()) {
				<-tick.C
			}
			continue
		}
		if err == nil || vedette.KindOf(err) != vedette.Unavailable || time.Now().After(deadline) {
			return err
		}
	}
}

// await waits until a number of objects are committed.
func (l *load) await(n int) {
	l.t.Helper()
	for committed := range l.committed {
		if committed >= n {
			return
		}
	}
	l.t.Fatalf("the load ended before it had committed %d objects", n)
}

// finish waits for all objects, and compares what is stored.
func (l *load) finish(want int) {
	l.t.Helper()
	for range l.committed { // until it has ended
	}
	page, err := l.store.Objects(l.t.Context(), read.Query{Accounts: []vedette.AccountName{"prod"}})
	if err != nil || len(page.Items) != want || page.Total != int64(want) {
		l.t.Errorf("got %d objects, total %d, %v, want %d", len(page.Items), page.Total, err, want)
	}
	feeds, err := l.store.Feeds(l.t.Context(), "prod")
	if err != nil || len(feeds) != 1 || feeds[0].Objects != int64(want) {
		l.t.Errorf("got feeds %+v, %v, want one with %d objects", feeds, err, want)
	}
}

// TestGaleraFaults commits through HAProxy while nodes fail: killed, and frozen, which to the others is a partition.
func TestGaleraFaults(t *testing.T) {
	onlyIfAll(t)
	cluster := databases.StartGalera(t, databases.Options{})
	proxy := databases.StartGaleraProxy(t, cluster)
	const objects = 400
	l := startLoad(t, proxy.URL, objects)
	l.await(50)
	cluster.Nodes[0].Kill()
	l.await(100)
	cluster.Nodes[0].Start()
	l.await(150)
	cluster.Nodes[0].Pause() // the node in use, as HAProxy has returned to the first one
	l.await(200)
	cluster.Nodes[0].Resume()
	cluster.AwaitMember(0)
	l.await(250)
	cluster.Isolate(0)
	l.await(300)
	cluster.Rejoin(0)
	cluster.AwaitMember(0)
	l.await(350)
	cluster.Nodes[1].Kill()
	cluster.Nodes[1].Start()
	l.finish(objects)
	if l.restarts != 0 {
		t.Errorf("the store was opened again %d times, want never: all nodes have the same history", l.restarts)
	}
}

// TestPatroniFaults kills the primary under load. Nothing that was confirmed is lost, because another node has it, and the store
// continues on the new primary.
func TestPatroniFaults(t *testing.T) {
	onlyIfAll(t)
	for name, pooled := range map[string]bool{"HAProxy": false, "PgBouncer and HAProxy": true} {
		t.Run(name, func(t *testing.T) {
			cluster := startPatroni(t, databases.PatroniOptions{Synchronous: true})
			url := cluster.Proxy.URL
			if pooled {
				url = databases.StartPgBouncer(t, url).URL
			}
			const objects = 300
			l := startLoad(t, url, objects)
			l.await(50)
			for round := range 2 {
				primary := cluster.Primary()
				primary.Kill()
				l.await(150 + 100*round)
				primary.Start()
				cluster.AwaitReplicas(len(cluster.Nodes)-1, true)
			}
			l.finish(objects)
			if l.restarts != 2 {
				t.Errorf("the store was opened again %d times, want once for each failover", l.restarts)
			}
		})
	}
}

// TestFailoverThatLosesCommits promotes a replica that lacks what the primary has confirmed. The store must neither read nor write on it
// with what it remembers.
func TestFailoverThatLosesCommits(t *testing.T) {
	onlyIfAll(t)
	cluster := startPatroni(t, databases.PatroniOptions{})
	l := startLoad(t, cluster.Proxy.URL, 0)
	for n := range 40 {
		if err := l.commit(n); err != nil {
			t.Fatal(err)
		}
	}
	cluster.AwaitReplicas(len(cluster.Nodes)-1, false)
	primary := cluster.Primary()
	primary.StopReplication(t)
	for n := range 20 {
		if err := l.commit(40 + n); err != nil {
			t.Fatal(err)
		}
	}
	primary.Kill()
	var err error
	for deadline := time.Now().Add(loadTimeout); !errors.Is(err, sqldb.ErrHistory); {
		err = commitPod(t, l.store, l.term, "later", "1")
		if err == nil {
			t.Fatal("a commit succeeded on a primary that lacks commits, want that the store notices")
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %v, want %v", err, sqldb.ErrHistory)
		}
	}
	if _, err := l.store.Objects(t.Context(), read.Query{}); !errors.Is(err, sqldb.ErrHistory) {
		t.Errorf("reading: got %v, want %v", err, sqldb.ErrHistory)
	}
	if err := l.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := l.store.Objects(t.Context(), read.Query{})
	if err != nil || len(page.Items) >= 60 {
		t.Errorf("got %d objects, %v: nothing was lost, so the test has tested nothing", len(page.Items), err)
	}
}
