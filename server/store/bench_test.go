package store_test

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/corpus"
	"github.com/vedette-io/vedette/test/databases"
	"github.com/vedette-io/vedette/test/proxy"
)

// The servers of the benchmarks wait for the disk, as in production. The remote ones have a round
// trip time of one millisecond, as between zones of one region.

func BenchmarkSQLite(b *testing.B) {
	benchmark(b, func(b *testing.B) string { return "sqlite:" + filepath.Join(b.TempDir(), "vedette.db") })
}

func BenchmarkPostgreSQL(b *testing.B) {
	benchmark(b, func(b *testing.B) string {
		return databases.StartPostgreSQL(b, databases.Options{Durable: true}).URL
	})
}

func BenchmarkMariaDB(b *testing.B) {
	benchmark(b, func(b *testing.B) string { return databases.StartMariaDB(b, databases.Options{Durable: true}).URL })
}

func BenchmarkPostgreSQLRemote(b *testing.B) {
	benchOperation(b, newBenchAccount(b, withLatency(b, databases.StartPostgreSQL(b, databases.Options{Durable: true}).URL)))
}

func BenchmarkMariaDBRemote(b *testing.B) {
	benchOperation(b, newBenchAccount(b, withLatency(b, databases.StartMariaDB(b, databases.Options{Durable: true}).URL)))
}

// withLatency returns the URL of the same database with a round trip time of one millisecond.
func withLatency(b *testing.B, dbURL string) string {
	u, err := url.Parse(dbURL)
	if err != nil {
		b.Fatal(err)
	}
	p := proxy.New(b, u.Host)
	p.Slow(time.Millisecond / 2)
	u.Host = p.Address()
	return u.String()
}

const batchSize = 500

func benchmark(b *testing.B, newURL func(*testing.B) string) {
	for _, bench := range []struct {
		name string
		run  func(*testing.B, *benchAccount)
	}{{"insert", benchInsert}, {"update", benchUpdate}, {"unchanged", benchUnchanged}, {"index", benchIndex}, {"application", benchApplication}, {"page", benchPage}, {"selector", benchSelector}, {"object", benchObject}, {"operation", benchOperation}} {
		b.Run(bench.name, func(b *testing.B) { bench.run(b, newBenchAccount(b, newURL(b))) })
	}
}

// benchAccount is an account that is written in batches of 500 objects.
type benchAccount struct {
	b    *testing.B
	s    *store.Store
	c    *corpus.Corpus
	term vedette.Term
	rv   int
	url  string
}

func newBenchAccount(b *testing.B, dbURL string) *benchAccount {
	s := storetest.Open(b, dbURL)
	if _, err := s.Register(b.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}}); err != nil {
		b.Fatal(err)
	}
	term, err := s.Acquire(b.Context(), "prod", registry.CacherClaim{Agent: "agent", Server: "server"})
	if err != nil {
		b.Fatal(err)
	}
	var feeds []commit.DeclaredFeed
	for _, r := range corpus.Kinds {
		feeds = append(feeds, commit.DeclaredFeed{Feed: vedette.Feed{Kind: r.Kind}, Resource: r})
	}
	if _, err := s.Declare(b.Context(), "prod", term, feeds, nil); err != nil {
		b.Fatal(err)
	}
	return &benchAccount{b: b, s: s, c: corpus.New(1), term: term, url: dbURL}
}

func (c *benchAccount) commit(objects []vedette.Object) int {
	c.rv++
	mark := vedette.Mark(fmt.Sprint(c.rv))
	changes, err := c.s.Commit(c.b.Context(), commit.Batch{Account: "prod", Term: c.term, Upserts: objects,
		Feeds: []commit.FeedUpdate{{Feed: vedette.Feed{Kind: corpus.Kinds[0].Kind}, Mark: &mark, State: vedette.FeedLive}}})
	if err != nil {
		c.b.Fatal(err)
	}
	return len(changes)
}

// fill inserts n objects and returns them in batches.
func (c *benchAccount) fill(n int) [][]vedette.Object {
	var batches [][]vedette.Object
	for range n / batchSize {
		objects := c.c.Objects(batchSize)
		c.commit(objects)
		batches = append(batches, objects)
	}
	return batches
}

// measure runs steps until the benchmark ends, and reports the rows that they return per second.
func (c *benchAccount) measure(prepare func() func() int) {
	rows, spent, cpuSpent := 0, time.Duration(0), time.Duration(0)
	c.b.ResetTimer()
	for c.b.Loop() {
		c.b.StopTimer()
		step := prepare()
		c.b.StartTimer()
		start, cpu := time.Now(), cpuTime()
		rows += step()
		spent += time.Since(start)
		cpuSpent += cpuTime() - cpu
	}
	c.b.ReportMetric(float64(rows)/spent.Seconds(), "rows/s")
	c.b.ReportMetric(float64(cpuSpent.Microseconds())/float64(rows), "cpu-µs/row")
}

// cpuTime returns the CPU time of this process, which says more than the clock on a shared
// machine.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func benchInsert(b *testing.B, c *benchAccount) {
	c.measure(func() func() int {
		objects := c.c.Objects(batchSize)
		return func() int { return c.commit(objects) }
	})
	c.size()
}

// size reports the bytes per object in a database of some 20,000.
func (c *benchAccount) size() {
	before, err := c.s.Stats(c.b.Context())
	if err != nil {
		c.b.Fatal(err)
	}
	c.fill(max(0, 20_000-int(before.Objects)))
	if strings.HasPrefix(c.url, "mysql:") { // its statistics are old otherwise
		if err := databases.Exec(c.url, `ANALYZE TABLE objects, labels, labelsets`); err != nil {
			c.b.Fatal(err)
		}
	}
	after, err := c.s.Stats(c.b.Context())
	if err != nil {
		c.b.Fatal(err)
	}
	c.b.ReportMetric(float64(after.Bytes)/float64(after.Objects), "bytes/object")
}

func benchUpdate(b *testing.B, c *benchAccount) {
	batches := c.fill(10_000)
	n := 0
	c.measure(func() func() int {
		at := n % len(batches)
		n++
		for i, o := range batches[at] {
			batches[at][i] = c.c.Touch(o)
		}
		return func() int { return c.commit(batches[at]) }
	})
	c.size()
}

func benchUnchanged(b *testing.B, c *benchAccount) {
	batches := c.fill(10_000)
	n := 0
	c.measure(func() func() int {
		n++
		return func() int {
			if changed := c.commit(batches[n%len(batches)]); changed != 0 {
				b.Fatalf("got %d changes, want none", changed)
			}
			return batchSize
		}
	})
}

func benchIndex(b *testing.B, c *benchAccount) {
	c.fill(20_000)
	c.measure(func() func() int {
		return func() int {
			rows := 0
			if err := c.s.Index(b.Context(), "prod", vedette.Feed{Kind: corpus.Kinds[0].Kind}, func(d []uint64) error { rows += len(d); return nil }); err != nil {
				b.Fatal(err)
			}
			return rows
		}
	})
}

func (c *benchAccount) query(q read.Query) {
	c.measure(func() func() int {
		return func() int {
			page, err := c.s.Objects(c.b.Context(), q)
			if err != nil || len(page.Items) == 0 {
				c.b.Fatalf("got %d rows, %v, want at least one", len(page.Items), err)
			}
			return len(page.Items)
		}
	})
}

func benchApplication(b *testing.B, c *benchAccount) {
	batches := c.fill(20_000)
	c.query(read.Query{Application: batches[3][0].Annotations["moniker.spinnaker.io/application"]})
}

func benchPage(b *testing.B, c *benchAccount) {
	c.fill(20_000)
	c.query(read.Query{Kinds: []vedette.Kind{corpus.Kinds[0].Kind}})
}

func benchSelector(b *testing.B, c *benchAccount) {
	batches := c.fill(20_000)
	c.query(read.Query{Kinds: []vedette.Kind{corpus.Kinds[0].Kind}, Selector: "app=" + batches[3][0].Labels["app"] + ",!nothing"})
}

func benchObject(b *testing.B, c *benchAccount) {
	batches := c.fill(10_000)
	n := 0
	c.measure(func() func() int {
		n++
		return func() int {
			if _, err := c.s.Object(b.Context(), "prod", batches[n%len(batches)][n%batchSize].Key); err != nil {
				b.Fatal(err)
			}
			return 1
		}
	})
}

// benchOperation does what the store does for one operation that changes an object.
func benchOperation(b *testing.B, c *benchAccount) {
	batches := c.fill(10_000)
	n := 0
	c.measure(func() func() int {
		n++
		o := batches[n%len(batches)][n%batchSize]
		o.ResourceVersion = fmt.Sprint(1_000_000_000 + n)
		row := history.Operation{ID: vedette.OperationID(ulid.Make().String()), Account: "prod", Server: "server", Verb: vedette.VerbPatch, Target: o.Key.String()}
		return func() int {
			if err := c.s.BeginOperation(b.Context(), row); err != nil {
				b.Fatal(err)
			}
			row.State = vedette.Done
			if changes, ended, err := c.s.WriteThrough(b.Context(), "prod", c.term, o, &row); err != nil || len(changes) != 1 || !ended {
				b.Fatal(changes, ended, err)
			}
			return 1
		}
	})
}
