package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/vedette-io/vedette"
)

// TransactionResult is how an attempt to write ended, for metrics.
type TransactionResult string

// The results of transactions.
const (
	Committed   TransactionResult = "committed"
	Collided    TransactionResult = "conflict"    // a deadlock or a serialization failure; retried once
	Unavailable TransactionResult = "unavailable" // the database did not answer, or takes no writes
	BadData     TransactionResult = "data"        // the database cannot keep the data
	Rejected    TransactionResult = "rejected"    // by a rule of the store, for example for an old term
	Canceled    TransactionResult = "canceled"    // the caller gave up
	OtherResult TransactionResult = "other"
)

// TransactionResults are all results.
func TransactionResults() []TransactionResult {
	return []TransactionResult{Committed, Collided, Unavailable, BadData, Rejected, Canceled, OtherResult}
}

// measure runs one attempt to write.
func (s *Store) measure(run func() error) error {
	if s.onTransaction == nil {
		return run()
	}
	start := time.Now()
	err := run()
	s.onTransaction(s.resultOf(err), time.Since(start))
	return err
}

func (s *Store) resultOf(err error) TransactionResult {
	switch {
	case err == nil:
		return Committed
	case s.dialect.isRetryable(err):
		return Collided
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, ErrNoFeed), errors.Is(err, ErrRewound):
		return Rejected
	}
	if vedette.KindOf(err) == "" {
		err = s.translateError(err)
	}
	switch kind := vedette.KindOf(err); {
	case errors.Is(err, ErrData):
		return BadData
	case kind == vedette.Unavailable:
		return Unavailable
	case kind != "":
		return Rejected
	}
	return OtherResult
}

// Pool is a pool of connections.
type Pool string

// The pools. They are the same one, except with SQLite.
const (
	WritePool Pool = "write"
	ReadPool  Pool = "read"
)

// PoolStats returns the state of the pools of connections. It does no I/O.
func (s *Store) PoolStats() map[Pool]sql.DBStats {
	stats := map[Pool]sql.DBStats{WritePool: s.db.Stats()}
	if s.reader != s.db {
		stats[ReadPool] = s.reader.Stats()
	}
	return stats
}

// FeedCount counts the feeds in one state.
type FeedCount struct {
	Feeds   int64
	Objects int64
	Drift   int64 // objects that were found to differ from their clusters
}

// FeedCounts counts the feeds by state, without those of removed and retired accounts, which no
// reader sees. It reads every row of feeds, so it is not for each request.
func (s *Store) FeedCounts(ctx context.Context) (map[vedette.FeedState]FeedCount, error) {
	counts := map[vedette.FeedState]FeedCount{}
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		var state string
		var c FeedCount
		err := rows.Scan(&state, &c.Feeds, &c.Objects, &c.Drift)
		counts[vedette.FeedState(state)] = c
		return err
	}, `SELECT f.state, COUNT(*), SUM(f.objects), SUM(f.drift) FROM feeds f JOIN accounts a ON a.id = f.account_id
		WHERE a.name IS NOT NULL GROUP BY f.state`)
	return counts, s.wrapError("count the feeds", err)
}

// FeedCountsByAccount counts the feeds of each account by state. It costs as much as FeedCounts.
func (s *Store) FeedCountsByAccount(ctx context.Context) (map[vedette.AccountName]map[vedette.FeedState]FeedCount, error) {
	byAccount := map[vedette.AccountName]map[vedette.FeedState]FeedCount{}
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
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
	}, `SELECT a.name, f.state, COUNT(*), SUM(f.objects), SUM(f.drift) FROM feeds f JOIN accounts a ON a.id = f.account_id
		WHERE a.name IS NOT NULL GROUP BY a.name, f.state`)
	return byAccount, s.wrapError("count the feeds of each account", err)
}
