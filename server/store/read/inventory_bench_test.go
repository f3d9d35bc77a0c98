package read_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// BenchmarkInventory reads the inventory of 5,000 accounts with 20,000 applications, each of which
// has a cluster in five accounts.
func BenchmarkInventory(b *testing.B) {
	s, err := store.Open(b.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(b.TempDir(), "vedette.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	if err := fillClusters(b.Context(), s, 5000, 20_000); err != nil {
		b.Fatal(err)
	}
	query := func(b *testing.B) *read.Inventory {
		v, err := s.Inventory(b.Context())
		if err != nil || len(v.Applications()) != 20_000 {
			b.Fatal(err)
		}
		return v
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			s.ForgetInventory()
			query(b)
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			query(b)
		}
	})
	b.Run("one account changed", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			if _, err := s.ExecWrite(b.Context(), sqldb.Named("test", `UPDATE clusters SET objects = objects + 1 WHERE account_id = 7`)); err != nil {
				b.Fatal(err)
			}
			before := query(b)
			s.StaleClusters.Mark("account-7")
			b.StartTimer()
			if query(b) == before {
				b.Fatal("got the same inventory after a change, want another one")
			}
		}
	})
}

func fillClusters(ctx context.Context, s *store.Store, accounts, applications int) error {
	return s.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		for i := 1; i <= accounts; i++ {
			if _, err := tx.Exec(ctx, sqldb.Named("test", `INSERT INTO accounts (id, name, term, cluster_uid, host, fingerprint, version, shape, properties, holder, server, registered, last_seen, orphaned)
			VALUES (?, ?, 1, '', '', '', '', '', '{}', '', '', 1, 1, 0)`), i, fmt.Sprint("account-", i)); err != nil {
				return err
			}
		}
		for i := range applications * 5 {
			name := fmt.Sprintf("application-%05d", i%applications)
			if _, err := tx.Exec(ctx, sqldb.Named("test", `INSERT INTO clusters (account_id, application, cluster, objects, managed) VALUES (?, ?, ?, 10, 10)`),
				(i*7919+i/applications)%accounts+1, name, "deployment "+name+fmt.Sprint(i)); err != nil {
				return err
			}
		}
		return nil
	})
}
