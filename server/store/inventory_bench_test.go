package store

import (
	"fmt"
	"path/filepath"
	"testing"
)

// BenchmarkInventory reads the inventory of 5,000 accounts with 20,000 applications, each of which
// has a cluster in five accounts.
func BenchmarkInventory(b *testing.B) {
	s, err := Open(b.Context(), Config{URL: "sqlite:" + filepath.Join(b.TempDir(), "vedette.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	if err := fillClusters(s, 5000, 20_000); err != nil {
		b.Fatal(err)
	}
	read := func(b *testing.B) *Inventory {
		v, err := s.Inventory(b.Context())
		if err != nil || len(v.Applications()) != 20_000 {
			b.Fatal(err)
		}
		return v
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			s.versions.inventory.current = nil
			read(b)
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			read(b)
		}
	})
	b.Run("one account changed", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			if _, err := s.db.ExecContext(b.Context(), `UPDATE clusters SET objects = objects + 1 WHERE account_id = 7`); err != nil {
				b.Fatal(err)
			}
			before := read(b)
			s.versions.inventory.markStale("account-7")
			b.StartTimer()
			if read(b) == before {
				b.Fatal("got the same inventory after a change, want another one")
			}
		}
	})
}

func fillClusters(s *Store, accounts, applications int) error {
	tx, err := s.db.Begin() //nolint:noctx // a benchmark
	if err != nil {
		return err
	}
	for i := 1; i <= accounts; i++ {
		if _, err := tx.Exec(`INSERT INTO accounts (id, name, term, cluster_uid, host, fingerprint, version, shape, properties, holder, server, registered, last_seen, orphaned)
			VALUES (?, ?, 1, '', '', '', '', '', '{}', '', '', 1, 1, 0)`, i, fmt.Sprint("account-", i)); err != nil {
			return err
		}
	}
	for i := range applications * 5 {
		name := fmt.Sprintf("application-%05d", i%applications)
		if _, err := tx.Exec(`INSERT INTO clusters (account_id, application, cluster, objects, managed) VALUES (?, ?, ?, 10, 10)`,
			(i*7919+i/applications)%accounts+1, name, "deployment "+name+fmt.Sprint(i)); err != nil {
			return err
		}
	}
	return tx.Commit()
}
