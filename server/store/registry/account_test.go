package registry_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// TestReleaseAllWithManyAccounts has more accounts than one transaction flushes.
func TestReleaseAllWithManyAccounts(t *testing.T) {
	f := newFixture(t)
	const many = 2*registry.ReleaseChunkSize + 7
	f.Must(f.Write(t.Context(), func(ctx context.Context, tx *sqldb.Tx) error {
		for n := range many {
			name := fmt.Sprint("many-", n)
			for _, q := range []string{
				`INSERT INTO accounts (id, name, term, cluster_uid, host, fingerprint, version, shape, properties, holder, server, registered, last_seen, orphaned) VALUES (?, ?, 5, 'u', '', '', '', '', '{}', 'a', 's', 1, 1, 0)`,
				`INSERT INTO feeds (account_id, kind_id, namespace, mark, state, message, objects, synced, seen, version, plural, singular, short_names, namespaced) VALUES (?, 1, ?, '1', 'live', '', 0, 1, 1, 'v1', 'pods', 'pod', '[]', 1)`,
			} {
				if _, err := tx.Exec(ctx, sqldb.Named("test", q), 1000+3*n, name); err != nil {
					return err
				}
			}
			if _, err := tx.Exec(ctx, sqldb.Named("test", `INSERT INTO freshness (id, term, seen) VALUES (?, 5, 100)`), name); err != nil {
				return err
			}
		}
		return nil
	}))
	f.Must(f.ReleaseAll(t.Context()))
	if n := f.count(`SELECT COUNT(*) FROM accounts WHERE term = 6 AND holder = '' AND orphaned > 0 AND last_seen = 100`); n != many {
		t.Errorf("got %d accounts released with the time they were last seen, want %d", n, many)
	}
	if n := f.count(`SELECT COUNT(*) FROM feeds WHERE seen = 100`); n != many {
		t.Errorf("got %d feeds with the time they were last seen, want %d", n, many)
	}
}

func (f *fixture) count(query string) (n int) {
	f.T.Helper()
	f.Must(f.QueryOne(f.T.Context(), sqldb.ScanInto(&n), sqldb.Named("test", query)))
	return n
}
