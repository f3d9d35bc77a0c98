package replication_test

import (
	"fmt"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/databases"
)

// BenchmarkCommit measures commits of one object and of many, on one machine and on several. All wait for the disk.
func BenchmarkCommit(b *testing.B) {
	durable := databases.Options{Durable: true}
	patroni := func(b *testing.B, synchronous bool) string {
		binaries, err := controlplane.Build(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		cluster := databases.StartPatroni(b, databases.PatroniOptions{Options: durable, EtcdProgram: binaries["etcd"], Synchronous: synchronous})
		cluster.AwaitReplicas(len(cluster.Nodes)-1, synchronous)
		return cluster.Proxy.URL
	}
	for _, setUp := range []struct {
		name string
		url  func(b *testing.B) string
	}{
		{"PostgreSQL", func(b *testing.B) string { return databases.StartPostgreSQL(b, durable).URL }},
		{"PgBouncer", func(b *testing.B) string {
			return databases.StartPgBouncer(b, databases.StartPostgreSQL(b, durable).URL).URL
		}},
		{"Patroni-asynchronous", func(b *testing.B) string { return patroni(b, false) }},
		{"Patroni-synchronous", func(b *testing.B) string { return patroni(b, true) }},
		{"MariaDB", func(b *testing.B) string { return databases.StartMariaDB(b, durable).URL }},
		{"Galera-no-sync-wait", func(b *testing.B) string {
			return databases.StartGalera(b, durable).Nodes[0].URL + "?wsrep_sync_wait=0"
		}},
		{"Galera", func(b *testing.B) string { return databases.StartGalera(b, durable).Nodes[0].URL }},
	} {
		b.Run(setUp.name, func(b *testing.B) {
			url := setUp.url(b)
			s, err := store.Open(b.Context(), sqldb.Config{URL: url})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			for _, objects := range []int{1, 500} {
				b.Run(fmt.Sprint(objects), func(b *testing.B) { benchmarkCommit(b, s, objects) })
			}
			b.Run("read", func(b *testing.B) {
				for b.Loop() {
					if _, err := s.Object(b.Context(), "account-1", podNamed("pod-0", "").Key); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// benchmarkCommit commits new versions of a number of objects.
func benchmarkCommit(b *testing.B, s *store.Store, objects int) {
	account := vedette.AccountName(fmt.Sprint("account-", objects))
	if _, err := s.Register(b.Context(), vedette.Account{Name: account, Cluster: vedette.Cluster{UID: "one"}}); err != nil {
		b.Fatal(err)
	}
	term, err := s.Acquire(b.Context(), account, registry.CacherClaim{Agent: "agent", Server: "server"})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Declare(b.Context(), account, term, []commit.DeclaredFeed{{Feed: pods}}, nil); err != nil {
		b.Fatal(err)
	}
	version := 0
	for b.Loop() {
		version++
		batch := commit.Batch{Account: account, Term: term}
		for n := range objects {
			batch.Upserts = append(batch.Upserts, podNamed(fmt.Sprint("pod-", n), fmt.Sprint(version)))
		}
		if _, err := s.Commit(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(objects*b.N)/b.Elapsed().Seconds(), "objects/s")
}
