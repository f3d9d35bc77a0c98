package read

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// feedTotals caches sums over the feeds of all accounts, because counting the feeds of a large
// fleet takes longer than reading a page. Sums over few feeds are not cached, so they are exact.
type feedTotals struct {
	mu      sync.Mutex
	entries map[string]feedTotal // by the accounts and kinds of the query
}

type feedTotal struct {
	objects int64
	read    time.Time
	cost    time.Duration // of reading it
}

const (
	// maxExactFeeds is the number of feeds that are counted for each query. It takes about a
	// millisecond.
	maxExactFeeds = 2000
	// totalReuse is how many times as long as it took to read it a sum is used, so that reading
	// sums takes at most two percent of the time.
	totalReuse = 50
	// minTotalReuse is for databases that are fast at the moment.
	minTotalReuse = time.Second
	// maxTotals bounds the memory of the cache. Queries rarely differ in their kinds.
	maxTotals = 256
)

// feedTotal returns the number of objects of the query's accounts and kinds. If these have many
// feeds, the number may be some seconds old.
func (r *resolvedQuery) feedTotal(ctx context.Context) (int64, error) {
	totals, key := &r.store.totals, r.totalKey()
	if objects, ok := totals.get(key, time.Now()); ok {
		return objects, nil
	}
	start := time.Now()
	objects, feeds, err := r.sumFeeds(ctx)
	if err == nil && feeds > maxExactFeeds {
		totals.put(key, feedTotal{objects, start, time.Since(start)})
	}
	return objects, err
}

func (r *resolvedQuery) sumFeeds(ctx context.Context) (objects, feeds int64, err error) {
	clause, args := r.scope.Where()
	err = r.store.db.QueryOneAnywhere(ctx, sqldb.ScanInto(&objects, &feeds), sqldb.Named("sum the objects of feeds", `SELECT COALESCE(SUM(f.objects), 0), COUNT(*)
		FROM feeds f JOIN accounts a ON a.id = f.account_id JOIN kinds k ON k.id = f.kind_id`+clause), args...)
	return objects, feeds, err
}

// ObjectCounts returns the number of objects of each kind in the accounts, or in all accounts if none
// is given.
func (r *Reader) ObjectCounts(ctx context.Context, accounts ...vedette.AccountName) (map[vedette.Kind]int64, error) {
	counts := map[vedette.Kind]int64{}
	where, args := registry.AccountCondition(accounts)
	err := r.db.QueryEachAnywhere(ctx, func(rows *sql.Rows) error {
		var kind vedette.Kind
		var objects int64
		err := rows.Scan(&kind.Name, &kind.Group, &objects)
		counts[kind] = objects
		return err
	}, sqldb.Named("count the objects of kinds", `SELECT k.name, k.grp, SUM(f.objects) FROM feeds f JOIN accounts a ON a.id = f.account_id JOIN kinds k ON k.id = f.kind_id
		WHERE `+where+` GROUP BY k.name, k.grp`), args...)
	return counts, r.db.WrapError("count objects", err)
}

// totalKey identifies the accounts and kinds of a query, whatever the order of the kinds.
func (r *resolvedQuery) totalKey() string {
	names := make([]string, len(r.Kinds))
	for i, kind := range r.Kinds {
		names[i] = kind.String()
	}
	slices.Sort(names)
	if r.accounts == nil {
		return fmt.Sprint(names)
	}
	accounts := xxhash.New()
	for _, id := range r.accounts {
		_ = binary.Write(accounts, binary.LittleEndian, id) // hashing does not fail
	}
	return fmt.Sprint(names, len(r.accounts), accounts.Sum64())
}

func (t *feedTotals) get(key string, now time.Time) (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	entry, ok := t.entries[key]
	return entry.objects, ok && now.Sub(entry.read) < max(minTotalReuse, totalReuse*entry.cost)
}

func (t *feedTotals) put(key string, entry feedTotal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries == nil || len(t.entries) >= maxTotals {
		t.entries = map[string]feedTotal{}
	}
	t.entries[key] = entry
}
