package replication_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest/suite"
	"github.com/vedette-io/vedette/test/databases"
	"github.com/vedette-io/vedette/test/proxy"
)

// replicated is a store that reads from replicas.
type replicated struct {
	*store.Store

	t    *testing.T
	term vedette.Term
	next int

	mu    sync.Mutex
	reads map[sqldb.ReplicaResult]int
}

func openReplicated(t *testing.T, address string, replicas ...string) *replicated {
	t.Helper()
	r := &replicated{t: t, reads: map[sqldb.ReplicaResult]int{}}
	var err error
	for deadline := time.Now().Add(loadTimeout); ; time.Sleep(100 * time.Millisecond) {
		r.Store, err = store.Open(t.Context(), sqldb.Config{URL: address, Replicas: replicas, OnReplicaRead: r.count})
		if err == nil || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if _, err := r.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "one"}}); err != nil {
		t.Fatal(err)
	}
	r.term = acquire(t, r.Store)
	declare(t, r.Store, r.term)
	return r
}

func (r *replicated) count(result sqldb.ReplicaResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads[result]++
}

func (r *replicated) reset() map[sqldb.ReplicaResult]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	reads := r.reads
	r.reads = map[sqldb.ReplicaResult]int{}
	return reads
}

// writeAndRead commits an object and reads it, again and again. Each read must see what was committed before.
func (r *replicated) writeAndRead(rounds int) {
	r.t.Helper()
	for range rounds {
		r.next++
		version := fmt.Sprint(r.next)
		if err := commitPod(r.t, r.Store, r.term, "replicated", version); err != nil {
			r.t.Fatal(err)
		}
		page, err := r.Objects(r.t.Context(), read.Query{Accounts: []vedette.AccountName{"prod"}, NamePrefix: "replicated", Bodies: true})
		if err != nil || len(page.Items) != 1 || !strings.Contains(string(page.Items[0].Body), version) {
			r.t.Fatalf("after version %s was committed, got %+v, %v", version, page.Items, err)
		}
	}
}

// awaitReplica writes and reads until a replica answers.
func (r *replicated) awaitReplica() {
	r.t.Helper()
	r.reset()
	for deadline := time.Now().Add(loadTimeout); ; time.Sleep(100 * time.Millisecond) {
		r.writeAndRead(5)
		if r.reset()[sqldb.ReplicaRead] > 0 {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatal("no replica has answered for a while")
		}
	}
}

// linksTo returns proxies in front of databases, and their URLs.
func linksTo(t *testing.T, urls []string) (links []*proxy.Proxy, throughLinks []string) {
	t.Helper()
	for _, address := range urls {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		link := proxy.New(t, u.Host)
		u.Host = link.Address()
		links, throughLinks = append(links, link), append(throughLinks, u.String())
	}
	return links, throughLinks
}

func onAll(t *testing.T, urls []string, statement string) {
	t.Helper()
	for _, address := range urls {
		if err := databases.Exec(address, statement); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadReplicas reads from streaming replicas of PostgreSQL that are late, frozen and killed, and after a failover.
func TestReadReplicas(t *testing.T) {
	onlyIfAll(t)
	cluster := startPatroni(t, databases.PatroniOptions{})
	primary := cluster.Primary()
	others := func() (urls []string) {
		for _, n := range cluster.Nodes {
			if n != primary {
				urls = append(urls, n.URL)
			}
		}
		return urls
	}
	urls := others()
	links, throughLinks := linksTo(t, urls)
	r := openReplicated(t, cluster.Proxy.URL, throughLinks...)
	if text, err := sqldb.Probe(t.Context(), sqldb.Config{URL: cluster.Proxy.URL, Replicas: throughLinks}); err != nil || !strings.Contains(text, "2 read replicas") {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := sqldb.Probe(t.Context(), sqldb.Config{URL: cluster.Proxy.URL, Replicas: []string{primary.URL}}); err == nil || !strings.Contains(err.Error(), "no replica") {
		t.Errorf("got %v for the primary as a replica", err)
	}
	r.awaitReplica()
	r.writeAndRead(300)
	if reads := r.reset(); reads[sqldb.ReplicaRead] < 100 {
		t.Errorf("got reads %v, want most from replicas", reads)
	}
	onAll(t, urls, `SELECT pg_wal_replay_pause()`)
	r.writeAndRead(10)
	if reads := r.reset(); reads[sqldb.ReplicaRead] > 0 || reads[sqldb.ReplicaBehind] == 0 {
		t.Errorf("got reads %v from replicas that do not apply what they get", reads)
	}
	onAll(t, urls, `SELECT pg_wal_replay_resume()`)
	r.awaitReplica()
	for _, fault := range []func(*proxy.Proxy){func(l *proxy.Proxy) { l.Freeze() }, (*proxy.Proxy).Cut, (*proxy.Proxy).Refuse} {
		for _, l := range links {
			fault(l)
		}
		r.writeAndRead(20)
		for _, l := range links {
			l.Heal()
		}
		r.awaitReplica()
	}
	t.Run("a server that is no replica", func(t *testing.T) {
		other := databases.StartPostgreSQL(t, databases.Options{})
		r := openReplicated(t, cluster.Proxy.URL, other.URL, primary.URL)
		r.writeAndRead(10)
		if reads := r.reset(); reads[sqldb.ReplicaRead] > 0 || reads[sqldb.ReplicaFailed] == 0 {
			t.Errorf("got reads %v from servers that are no replicas", reads)
		}
	})
	primary.Kill()
	former := primary
	for deadline := time.Now().Add(loadTimeout); primary == former || primary == nil; time.Sleep(100 * time.Millisecond) {
		if primary = cluster.Primary(); time.Now().After(deadline) {
			t.Fatal("no other node has become the primary")
		}
	}
	urls = others()
	r = openReplicated(t, cluster.Proxy.URL, urls...)
	r.writeAndRead(50)
	onAll(t, []string{primary.URL}, `CHECKPOINT`) // its replicas write restart points then
	for deadline := time.Now().Add(loadTimeout); ; time.Sleep(200 * time.Millisecond) {
		for _, address := range urls {
			if address != former.URL {
				_ = databases.Exec(address, `CHECKPOINT`) // not before it has replayed the primary's
			}
		}
		r.writeAndRead(5)
		if r.reset()[sqldb.ReplicaRead] > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no replica of the new primary has answered for a while")
		}
	}
}

// TestSuiteWithReadReplicas runs the store's suite, whose reads see what was written before.
func TestSuiteWithReadReplicas(t *testing.T) {
	onlyIfAll(t)
	var created atomic.Int64
	for _, setup := range []struct {
		name  string
		start func(t *testing.T) (database func(t *testing.T) (url string, replicas []string))
	}{
		{"Patroni", func(t *testing.T) func(t *testing.T) (string, []string) {
			cluster := startPatroni(t, databases.PatroniOptions{})
			primary := cluster.Primary()
			return func(t *testing.T) (address string, replicas []string) {
				address = createDatabase(t, cluster.Proxy.URL, cluster.Proxy.URL, created.Add(1))
				for _, n := range cluster.Nodes {
					if n != primary {
						replicas = append(replicas, n.URL[:strings.LastIndex(n.URL, "/")+1]+nameOf(address))
					}
				}
				return address, replicas
			}
		}},
		{"Galera", func(t *testing.T) func(t *testing.T) (string, []string) {
			cluster := databases.StartGalera(t, databases.Options{})
			return func(*testing.T) (address string, replicas []string) {
				address = cluster.Database(0)
				return address, []string{cluster.At(1, nameOf(address)), cluster.At(2, nameOf(address))}
			}
		}},
	} {
		t.Run(setup.name, func(t *testing.T) {
			var reads, fromReplicas atomic.Int64
			t.Cleanup(func() {
				t.Logf("%d of %d reads from replicas", fromReplicas.Load(), reads.Load())
				if fromReplicas.Load() == 0 {
					t.Error("nothing was read from a replica")
				}
			})
			database := setup.start(t)
			suite.Run(t, func(t *testing.T) *store.Store {
				address, replicas := database(t)
				s, err := store.Open(t.Context(), sqldb.Config{URL: address, Replicas: replicas, OnReplicaRead: func(result sqldb.ReplicaResult) {
					reads.Add(1)
					if result == sqldb.ReplicaRead {
						fromReplicas.Add(1)
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close() })
				return s
			})
		})
	}
}
