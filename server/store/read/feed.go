package read

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/batch"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Marks returns the feeds of an account, with the marks from which agents continue. Those of accounts that move at once are read together.
func (r *Reader) Marks(ctx context.Context, account vedette.AccountName) ([]FeedStatus, error) {
	return r.marks.Do(ctx, account)
}

func (r *Reader) marksOf(ctx context.Context, account vedette.AccountName) ([]FeedStatus, error) {
	return r.Feeds(ctx, account)
}

func (r *Reader) marksOfMany(ctx context.Context, accounts []vedette.AccountName) ([]batch.Outcome[[]FeedStatus], error) {
	feeds, err := r.Feeds(ctx, accounts...)
	if err != nil {
		return nil, err
	}
	byAccount := map[vedette.AccountName][]FeedStatus{}
	for _, f := range feeds {
		byAccount[f.Account] = append(byAccount[f.Account], f)
	}
	outcomes := make([]batch.Outcome[[]FeedStatus], len(accounts))
	for i, account := range accounts {
		outcomes[i].Value = byAccount[account]
	}
	return outcomes, nil
}

// Feeds returns the feeds of the accounts, or of all accounts if none is given, ordered by
// account, kind and namespace.
func (r *Reader) Feeds(ctx context.Context, accounts ...vedette.AccountName) ([]FeedStatus, error) {
	var feeds []FeedStatus
	where, args := registry.AccountCondition(accounts)
	err := r.db.QueryEach(ctx, func(rows *sql.Rows) error {
		f, err := scanFeed(rows)
		feeds = append(feeds, f)
		return err
	}, sqldb.Named("read feeds", `SELECT a.name, k.name, k.grp, f.namespace, f.mark, f.state, `+registry.ShownState+`, `+registry.ShownMessage+`, f.objects, f.synced, f.seen, `+registry.Freshness+`, f.version, f.plural, f.singular, f.short_names, f.namespaced, f.verified, f.drift
		FROM feeds f JOIN accounts a ON a.id = f.account_id JOIN kinds k ON k.id = f.kind_id`+registry.JoinFreshness+`WHERE `+where+` ORDER BY a.name, k.name, k.grp, f.namespace`), args...)
	return feeds, r.db.WrapError("read the feeds", err)
}

func scanFeed(row sqldb.Scanner) (FeedStatus, error) {
	var f FeedStatus
	var account, mark, stored, shown, short string
	var synced, seen, freshnessSeen, verified int64
	r := &f.Resource
	err := row.Scan(&account, &f.Feed.Kind.Name, &f.Feed.Kind.Group, &f.Feed.Namespace, &mark, &stored, &shown, &f.Message, &f.Objects,
		&synced, &seen, &freshnessSeen,
		&r.Version, &r.Plural, &r.Singular, &short, &r.Namespaced, &verified, &f.Drift)
	if err != nil {
		return f, err
	}
	f.Account = vedette.AccountName(account)
	f.Mark = vedette.Mark(mark)
	f.State = vedette.FeedState(shown)
	if vedette.FeedState(stored) == vedette.FeedLive { // also if another agent goes on with it
		seen = max(seen, freshnessSeen)
	}
	f.Verified = sqldb.FromMicros(verified)
	f.Synced = sqldb.FromMicros(synced)
	f.LastSeen = sqldb.FromMicros(seen)
	r.Kind = f.Feed.Kind
	return f, json.Unmarshal([]byte(short), &r.ShortNames)
}

// Resources returns what the accounts' API servers serve, without duplicates, to resolve names
// that users type. A kind may occur in several versions.
func (r *Reader) Resources(ctx context.Context, accounts ...vedette.AccountName) ([]vedette.Resource, error) {
	var resources []vedette.Resource
	where, args := registry.AccountCondition(accounts)
	err := r.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var r vedette.Resource
		var short string
		if err := rows.Scan(&r.Kind.Name, &r.Kind.Group, &r.Version, &r.Plural, &r.Singular, &short, &r.Namespaced); err != nil {
			return err
		}
		resources = append(resources, r)
		return json.Unmarshal([]byte(short), &resources[len(resources)-1].ShortNames)
	}, sqldb.Named("read resources", `SELECT DISTINCT k.name, k.grp, f.version, f.plural, f.singular, f.short_names, f.namespaced
		FROM feeds f JOIN accounts a ON a.id = f.account_id JOIN kinds k ON k.id = f.kind_id
		WHERE `+where+` ORDER BY k.name, k.grp, f.version`), args...)
	return resources, r.db.WrapError("read the resources", err)
}

// Namespaces returns the names of the Namespaces that are stored of the accounts, or of all accounts
// if none is given, sorted. An account that does not cache Namespaces is missing.
func (r *Reader) Namespaces(ctx context.Context, accounts ...vedette.AccountName) (map[vedette.AccountName][]string, error) {
	const action = "read the namespaces of accounts"
	names := map[vedette.AccountName][]string{}
	kind, ok, err := r.kinds.LookupID(ctx, catalog.NamespaceKind)
	if err != nil || !ok {
		return names, r.db.WrapError(action, err)
	}
	where, args := registry.AccountCondition(accounts)
	err = r.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var account, name string
		err := rows.Scan(&account, &name)
		names[vedette.AccountName(account)] = append(names[vedette.AccountName(account)], name)
		return err
	}, sqldb.Named("read namespaces", `SELECT a.name, o.name FROM accounts a `+r.dialect.orderedJoin+` objects o ON o.account_id = a.id AND o.kind_id = ? WHERE `+where+
		` ORDER BY a.id, o.name`), append([]any{kind}, args...)...)
	return names, r.db.WrapError(action, err)
}

// FeedCount counts the feeds in one state.
type FeedCount struct {
	Feeds   int64
	Objects int64
	Drift   int64 // objects that were found to differ from their clusters
}

// FeedCounts counts the feeds by state, without those of removed and retired accounts, which no
// reader sees. It reads every row of feeds, so it is not for each request.
func (r *Reader) FeedCounts(ctx context.Context) (map[vedette.FeedState]FeedCount, error) {
	counts := map[vedette.FeedState]FeedCount{}
	err := r.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var state string
		var c FeedCount
		err := rows.Scan(&state, &c.Feeds, &c.Objects, &c.Drift)
		counts[vedette.FeedState(state)] = c
		return err
	}, sqldb.Named("count feeds", `SELECT `+registry.ShownState+`, COUNT(*), SUM(f.objects), SUM(f.drift) FROM feeds f JOIN accounts a ON a.id = f.account_id
		WHERE a.name IS NOT NULL GROUP BY `+registry.ShownState))
	return counts, r.db.WrapError("count the feeds", err)
}

// FeedCountsByAccount counts the feeds of each account by state. It costs as much as FeedCounts.
func (r *Reader) FeedCountsByAccount(ctx context.Context) (map[vedette.AccountName]map[vedette.FeedState]FeedCount, error) {
	byAccount := map[vedette.AccountName]map[vedette.FeedState]FeedCount{}
	err := r.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var account, state string
		var c FeedCount
		if err := rows.Scan(&account, &state, &c.Feeds, &c.Objects, &c.Drift); err != nil {
			return err
		}
		counts := byAccount[vedette.AccountName(account)]
		if counts == nil {
			counts = map[vedette.FeedState]FeedCount{}
			byAccount[vedette.AccountName(account)] = counts
		}
		counts[vedette.FeedState(state)] = c
		return nil
	}, sqldb.Named("count the feeds of accounts", `SELECT a.name, `+registry.ShownState+`, COUNT(*), SUM(f.objects), SUM(f.drift) FROM feeds f JOIN accounts a ON a.id = f.account_id
		WHERE a.name IS NOT NULL GROUP BY a.name, `+registry.ShownState))
	return byAccount, r.db.WrapError("count the feeds of each account", err)
}
