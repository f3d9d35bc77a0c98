package store_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/corpus"
	"github.com/vedette-io/vedette/test/databases"
)

func BenchmarkAttributesSQLite(b *testing.B) {
	benchmarkAttributes(b, "sqlite:"+filepath.Join(b.TempDir(), "vedette.db"))
}

func BenchmarkAttributesPostgreSQL(b *testing.B) {
	benchmarkAttributes(b, databases.StartPostgreSQL(b, databases.Options{Durable: true}).URL)
}

func BenchmarkAttributesMariaDB(b *testing.B) {
	benchmarkAttributes(b, databases.StartMariaDB(b, databases.Options{Durable: true}).URL)
}

const (
	benchApp      = "bench"
	benchAccounts = 50
)

var (
	benchPods        = corpus.Kinds[0].Kind
	benchReplicaSets = corpus.Kinds[1].Kind
	benchDeployments = corpus.Kinds[2].Kind
	benchServices    = corpus.Kinds[3].Kind
)

// benchmarkAttributes reads what list views need of an application of 1,000 workloads and 5,000
// Pods in 5 accounts, among 100,000 objects in 50 accounts.
func benchmarkAttributes(b *testing.B, url string) {
	s := storetest.Open(b, url)
	total := 0
	for i := range benchAccounts {
		total += fillAttributes(b, s, vedette.AccountName(fmt.Sprintf("account-%02d", i)), uint64(i), i%10 == 0)
	}
	workloads := []vedette.Kind{benchDeployments, benchReplicaSets}
	for _, bench := range []struct {
		name string
		read func() ([]read.AttributesRow, error)
	}{
		{"application", func() ([]read.AttributesRow, error) { return s.ApplicationAttributes(b.Context(), benchApp, nil) }},
		{"workloads", func() ([]read.AttributesRow, error) {
			return s.ApplicationAttributes(b.Context(), benchApp, workloads)
		}},
		{"owned", func() ([]read.AttributesRow, error) {
			return s.OwnedAttributes(b.Context(), benchApp, []vedette.Kind{benchReplicaSets}, []vedette.Kind{benchPods})
		}},
		{"neighbors", func() ([]read.AttributesRow, error) {
			return s.NeighborAttributes(b.Context(), benchApp, workloads, []vedette.Kind{benchServices})
		}},
		{"kind", func() ([]read.AttributesRow, error) {
			return s.KindAttributes(b.Context(), read.AttributesQuery{Kinds: []vedette.Kind{benchServices}})
		}},
		{"search few", searchFor(b, s, "account-17:")},
		{"search many", searchFor(b, s, "a")},
		{"search none", searchFor(b, s, "none-such")},
		{"search related", searchRelated(b, s)},
	} {
		b.Run(bench.name, func(b *testing.B) { measureRead(b, total, bench.read) })
	}
	b.Run("named", func(b *testing.B) {
		rows, err := s.OwnedAttributes(b.Context(), benchApp, []vedette.Kind{benchReplicaSets}, []vedette.Kind{benchPods})
		if err != nil {
			b.Fatal(err)
		}
		var refs []read.ObjectRef
		for i := range min(256, len(rows)) {
			refs = append(refs, read.ObjectRef{Account: rows[i].Account, Key: rows[i].Key})
		}
		measureRead(b, total, func() ([]read.AttributesRow, error) { return s.AttributesOf(b.Context(), refs) })
	})
	b.Run("owned by", func(b *testing.B) {
		var owners []read.OwnerRef
		rows, err := s.ApplicationAttributes(b.Context(), benchApp, []vedette.Kind{benchReplicaSets})
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range rows {
			owners = append(owners, read.OwnerRef{Account: r.Account, UID: r.UID})
		}
		measureRead(b, total, func() ([]read.AttributesRow, error) {
			return s.AttributesOwnedBy(b.Context(), owners, []vedette.Kind{benchPods})
		})
	})
}

func searchFor(b *testing.B, s *store.Store, text string) func() ([]read.AttributesRow, error) {
	q := read.SearchQuery{Text: text, KeyPrefix: "kubernetes.v2:infrastructure:", KindName: func(k vedette.Kind) string { return k.Name }, Limit: 500}
	return func() ([]read.AttributesRow, error) {
		rows, err := s.Search(b.Context(), q)
		return make([]read.AttributesRow, len(rows)), err
	}
}

// searchRelated searches for the objects of the application.
func searchRelated(b *testing.B, s *store.Store) func() ([]read.AttributesRow, error) {
	q := read.SearchQuery{Text: benchApp, KindName: func(k vedette.Kind) string { return k.Name }, Limit: 500,
		Related: &read.RelatedQuery{Applications: []string{benchApp}, Kinds: []vedette.Kind{benchReplicaSets, benchDeployments, benchServices}}}
	return func() ([]read.AttributesRow, error) {
		rows, err := s.Search(b.Context(), q)
		return make([]read.AttributesRow, len(rows)), err
	}
}

// measureRead reports the median and the 99th percentile.
func measureRead(b *testing.B, total int, query func() ([]read.AttributesRow, error)) {
	var times []time.Duration
	rows := 0
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		got, err := query()
		if err != nil {
			b.Fatal(err)
		}
		times, rows = append(times, time.Since(start)), len(got)
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[0].Microseconds())/1000, "min-ms")
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(rows), "rows")
	b.ReportMetric(float64(total), "objects")
}

// fillAttributes inserts 2,000 objects, and 200 workloads with 1,000 Pods of the application.
func fillAttributes(b *testing.B, s *store.Store, account vedette.AccountName, seed uint64, hasApplication bool) int {
	if _, err := s.Register(b.Context(), vedette.Account{Name: account, Cluster: vedette.Cluster{UID: string(account)}}); err != nil {
		b.Fatal(err)
	}
	term, err := s.Acquire(b.Context(), account, registry.CacherClaim{Agent: "agent", Server: "server"})
	if err != nil {
		b.Fatal(err)
	}
	var feeds []commit.DeclaredFeed
	for _, r := range corpus.Kinds {
		feeds = append(feeds, commit.DeclaredFeed{Feed: vedette.Feed{Kind: r.Kind}, Resource: r})
	}
	if _, err := s.Declare(b.Context(), account, term, feeds, nil); err != nil {
		b.Fatal(err)
	}
	c := corpus.New(seed)
	objects := c.Objects(2000)
	if hasApplication {
		objects = append(objects, applicationObjects(c)...)
	}
	for batch := range slices.Chunk(objects, 500) {
		if _, err := s.Commit(b.Context(), commit.Batch{Account: account, Term: term, Upserts: batch}); err != nil {
			b.Fatal(err)
		}
	}
	return len(objects)
}

func applicationObjects(c *corpus.Corpus) []vedette.Object {
	left := map[vedette.Kind]int{benchPods: 1000, benchDeployments: 100, benchReplicaSets: 100, benchServices: 100}
	var objects []vedette.Object
	for len(left) > 0 {
		o := c.Next().Object
		if left[o.Kind] == 0 || o.Kind == benchReplicaSets && o.Annotations["deployment.kubernetes.io/revision"] != "3" {
			continue
		}
		if left[o.Kind]--; left[o.Kind] == 0 {
			delete(left, o.Kind)
		}
		o.Annotations["moniker.spinnaker.io/application"] = benchApp
		objects = append(objects, o)
	}
	return objects
}
