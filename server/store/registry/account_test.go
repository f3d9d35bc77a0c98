package registry_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// TestReleaseAllWithManyAccounts has more accounts than one transaction releases.
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
	if n := f.count(`SELECT COUNT(*) FROM accounts WHERE term = 6 AND holder = '' AND orphaned > 0`); n != many {
		t.Errorf("got %d accounts released, want %d", n, many)
	}
	accounts, err := f.Accounts(t.Context())
	f.Must(err)
	feeds, err := f.Feeds(t.Context())
	f.Must(err)
	wasSeen := func(at time.Time) bool { return at.Equal(time.UnixMicro(100)) }
	seen := len(slices.DeleteFunc(accounts, func(a registry.Account) bool { return !wasSeen(a.LastSeen) }))
	complete := len(slices.DeleteFunc(feeds, func(f read.FeedStatus) bool { return !wasSeen(f.LastSeen) }))
	if seen != many || complete != many {
		t.Errorf("got %d accounts and %d feeds with the time they were last seen, want %d", seen, complete, many)
	}
	if n := f.count(`SELECT COUNT(*) FROM feeds WHERE account_id >= 1000 AND seen <> 1`); n != 0 {
		t.Errorf("%d rows of feeds were written, want none", n)
	}
}

func (f *fixture) count(query string) (n int) {
	f.T.Helper()
	f.Must(f.QueryOne(f.T.Context(), sqldb.ScanInto(&n), sqldb.Named("test", query)))
	return n
}
