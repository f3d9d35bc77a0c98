package write

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/batch"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/versions"
)

// liveFeeds are feeds of all namespaces of an account that become live.
type liveFeeds struct {
	account vedette.AccountName
	term    vedette.Term
	kinds   []int64 // sorted
}

// errCommitAlone means that a batch is to be committed like any other.
var errCommitAlone = errors.New("the account is not written together with others")

// makeLive commits a batch by which feeds become live and nothing else changes, together with those of other accounts: when a server ends,
// thousands of accounts become live again at once. It reports whether it did.
func (w *Writer) makeLive(ctx context.Context, b *commit.Batch) (done bool, err error) {
	feeds, ok := w.onlyLive(b)
	if !ok || w.writeThrough.Knows(b.Account) {
		return false, nil
	}
	unlock, err := w.locks.Lock(ctx, b.Account)
	if err != nil {
		return false, err
	}
	defer unlock()
	if w.locks.IsUncertain(b.Account) {
		return false, nil
	}
	if _, err = w.live.Do(ctx, feeds); errors.Is(err, errCommitAlone) {
		return false, nil
	}
	return err == nil, err
}

// onlyLive returns the feeds of a batch that does nothing but make feeds of all namespaces live.
func (w *Writer) onlyLive(b *commit.Batch) (live liveFeeds, ok bool) {
	if len(b.Feeds) == 0 || len(b.Upserts)+len(b.Deletes)+len(b.Drops) > 0 {
		return liveFeeds{}, false
	}
	live = liveFeeds{account: b.Account, term: b.Term}
	for _, u := range b.Feeds {
		kind, known := w.kinds.CachedID(u.Feed.Kind)
		if !known || u != (commit.FeedUpdate{Feed: u.Feed, State: vedette.FeedLive}) || u.Feed.Namespace != "" {
			return liveFeeds{}, false
		}
		live.kinds = append(live.kinds, kind)
	}
	slices.Sort(live.kinds)
	return live, true
}

// setFeedsLive is for one account: Commit does it as well as anything else.
func (*Writer) setFeedsLive(context.Context, liveFeeds) (struct{}, error) {
	return struct{}{}, errCommitAlone
}

// setManyLive makes feeds of accounts live in one transaction. It leaves out accounts that are locked, or have another term.
func (w *Writer) setManyLive(ctx context.Context, all []liveFeeds) (outcomes []batch.Outcome[struct{}], err error) {
	err = w.db.WriteLowPriority(ctx, func(ctx context.Context, tx *sqldb.Tx) (err error) {
		outcomes, err = setManyLive(ctx, tx, all)
		return err
	})
	for i, l := range all {
		switch {
		case err != nil:
			w.locks.MarkUncertain(l.account) // before it is committed alone
		case !outcomes[i].IsLeft:
			w.versions.AccountLog.Note(l.account)
			w.versions.PublishOutcome(&versions.Effect{Account: l.account}, nil)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make the feeds of %d accounts live: %w", len(all), err)
	}
	return outcomes, nil
}

func setManyLive(ctx context.Context, tx *sqldb.Tx, all []liveFeeds) ([]batch.Outcome[struct{}], error) {
	names := make([]vedette.AccountName, len(all))
	for i, l := range all {
		names[i] = l.account
	}
	locked, err := lockFreeAccounts(ctx, tx, tx.Dialect.InTexts("name", textsOf(names)))
	if err != nil {
		return nil, err
	}
	outcomes := make([]batch.Outcome[struct{}], len(all))
	groups := map[liveGroupKey]*liveGroup{}
	for i, l := range all {
		row, isLocked := locked[l.account]
		delete(locked, l.account)
		if !isLocked || row.term != l.term {
			outcomes[i].IsLeft = true
			continue
		}
		key := liveGroupKey{fmt.Sprint(l.kinds), row.isResumed}
		if groups[key] == nil {
			groups[key] = &liveGroup{kinds: l.kinds}
		}
		groups[key].accounts = append(groups[key].accounts, row.id)
	}
	for key, g := range groups { // in any order, because the accounts are locked
		if key.isResumed {
			if err := g.resume(ctx, tx); err != nil {
				return nil, err
			}
		}
		if err := g.setLive(ctx, tx); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// liveGroup are accounts of which the same kinds become live.
type liveGroup struct{ kinds, accounts []int64 }

type liveGroupKey struct {
	kinds     string
	isResumed bool
}

// resume ends the resumption of the accounts. It removes those from the group whose feeds all go on as they are stored.
func (g *liveGroup) resume(ctx context.Context, tx *sqldb.Tx) error {
	var goOn, others []int64
	where, args := sqldb.Conditions{tx.Dialect.In("account_id", g.accounts), sqldb.Cond("state IN ('live', 'syncing')")}.Where()
	inKinds := tx.Dialect.In("kind_id", g.kinds)
	err := tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var account, all, named int64
		err := rows.Scan(&account, &all, &named)
		if all == named && named == int64(len(g.kinds)) {
			goOn = append(goOn, account)
		}
		return err
	}, sqldb.Named("compare feeds that go on", `SELECT account_id, COUNT(*), SUM(CASE WHEN state = 'live' AND message = '' AND namespace = '' AND `+inKinds.SQL+` THEN 1 ELSE 0 END) FROM feeds`+
		where+` GROUP BY account_id`), slices.Concat(inKinds.Args, args)...)
	if err != nil {
		return err
	}
	for _, account := range g.accounts {
		if !slices.Contains(goOn, account) {
			others = append(others, account)
		}
	}
	g.accounts = others
	if len(goOn) > 0 {
		if err := registry.EndResumptions(ctx, tx, goOn); err != nil {
			return err
		}
	}
	if len(others) > 0 {
		return registry.MakeManyPending(ctx, tx, others)
	}
	return nil
}

func (g *liveGroup) setLive(ctx context.Context, tx *sqldb.Tx) error {
	if len(g.accounts) == 0 {
		return nil
	}
	where, args := sqldb.Conditions{tx.Dialect.In("account_id", g.accounts), sqldb.Cond("namespace = ''"),
		tx.Dialect.In("kind_id", g.kinds)}.Where()
	n, err := tx.Exec(ctx, sqldb.Named("make feeds of accounts live", `UPDATE feeds SET state = ?, message = ''`+where), append([]any{string(vedette.FeedLive)}, args...)...)
	if want := int64(len(g.accounts) * len(g.kinds)); err == nil && n != want { // a feed is not declared: its account is told alone
		err = fmt.Errorf("make %d feeds live: %d are declared", want, n)
	}
	return err
}

// lockedAccount is the row of an account that is locked.
type lockedAccount struct {
	id        int64
	term      vedette.Term
	isResumed bool
}

// lockFreeAccounts locks those of some accounts that nobody else has locked. On a Galera cluster it writes their rows, because a lock is
// seen by one node only.
func lockFreeAccounts(ctx context.Context, tx *sqldb.Tx, condition sqldb.Condition) (map[vedette.AccountName]lockedAccount, error) {
	locked := map[vedette.AccountName]lockedAccount{}
	var ids []int64
	err := tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var name vedette.AccountName
		var row lockedAccount
		err := rows.Scan(&row.id, &name, &row.term, &row.isResumed)
		locked[name] = row
		ids = append(ids, row.id)
		return err
	}, sqldb.Named("lock accounts", `SELECT a.id, a.name, a.term, CASE WHEN `+registry.IsResumed+` THEN 1 ELSE 0 END FROM accounts a WHERE `+condition.SQL+` ORDER BY a.name`+tx.Dialect.SkipLocked), condition.Args...)
	if err != nil || len(ids) == 0 {
		return locked, err
	}
	in := tx.Dialect.In("id", ids)
	return locked, tx.WriteToLock(ctx, sqldb.Named("write the locks of accounts", `UPDATE accounts SET locks = locks + 1 WHERE `+in.SQL), in.Args...)
}
