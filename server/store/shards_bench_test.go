package store_test

import (
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/databases"
	"github.com/vedette-io/vedette/test/proxy"
)

// BenchmarkShards measures commits of one object, of many accounts at once, over one database and over several. Each database has a server of its own, which
// waits for the disk. All of them share one machine, so nothing is gained where processors are the limit. With a round trip time, what limits
// is how many transactions a server has at one database.
func BenchmarkShards(b *testing.B) {
	for _, roundTrip := range []time.Duration{0, 10 * time.Millisecond} {
		for count := 1; count <= 3; count++ {
			b.Run(fmt.Sprintf("round-trip=%v/databases=%d", roundTrip, count), func(b *testing.B) {
				f := newShardedAccounts(b, count, roundTrip)
				b.Run("commit", f.benchCommits)
			})
		}
	}
}

// shardedAccounts are accounts that are spread over databases.
type shardedAccounts struct {
	s     *store.Store
	terms [64]vedette.Term // more accounts than a server has connections to one database
	last  atomic.Int64     // the last version of an object
}

func newShardedAccounts(b *testing.B, databaseCount int, roundTrip time.Duration) *shardedAccounts {
	var cfg sqldb.Config
	var proxies []*proxy.Proxy
	for i := range databaseCount {
		u, err := url.Parse(databases.StartPostgreSQL(b, databases.Options{Durable: true}).URL)
		if err != nil {
			b.Fatal(err)
		}
		if roundTrip > 0 {
			p := proxy.New(b, u.Host)
			u.Host = p.Address()
			proxies = append(proxies, p)
		}
		if i == 0 {
			cfg.URL = u.String()
		} else {
			cfg.Shards = append(cfg.Shards, sqldb.Shard{Name: fmt.Sprint("db", i), URL: u.String()})
		}
	}
	f := &shardedAccounts{s: storetest.OpenConfig(b, cfg)}
	for i := range f.terms {
		f.terms[i] = declareBenchAccount(b, f.s, benchAccountName(i))
	}
	for _, p := range proxies {
		p.AddLatency(roundTrip / 2)
	}
	return f
}

func (f *shardedAccounts) benchCommits(b *testing.B) {
	var next atomic.Int64
	b.SetParallelism(len(f.terms))
	cpu := cpuTime()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		n := int(next.Add(1) - 1)
		if n >= len(f.terms) { // RunParallel begins as many for each processor
			return
		}
		for pb.Next() {
			_, err := f.s.Commit(b.Context(), commit.Batch{Account: benchAccountName(n), Term: f.terms[n],
				Upserts: []vedette.Object{storetest.PodAt(1, int(f.last.Add(1)))}})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(b.N), "cpu-µs/commit")
}

func benchAccountName(n int) vedette.AccountName {
	return vedette.AccountName(fmt.Sprintf("account-%02d", n))
}

// declareBenchAccount registers an account with a feed of pods.
func declareBenchAccount(b *testing.B, s *store.Store, account vedette.AccountName) vedette.Term {
	if _, err := s.Register(b.Context(), vedette.Account{Name: account, Cluster: vedette.Cluster{UID: string(account)}}); err != nil {
		b.Fatal(err)
	}
	term, err := s.Acquire(b.Context(), account, registry.CacherClaim{Agent: "agent", Server: "server"})
	if err != nil {
		b.Fatal(err)
	}
	feeds := storetest.DeclaredFeeds(storetest.PodFeed)
	if _, err := s.Declare(b.Context(), account, term, feeds, nil); err != nil {
		b.Fatal(err)
	}
	return term
}
