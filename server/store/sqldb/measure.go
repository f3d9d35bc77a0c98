package sqldb

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
func (d *DB) measure(run func() error) error {
	if d.onTransaction == nil {
		return run()
	}
	start := time.Now()
	err := run()
	d.onTransaction(d.resultOf(err), time.Since(start))
	return err
}

func (d *DB) resultOf(err error) TransactionResult {
	switch {
	case err == nil:
		return Committed
	case d.Dialect.isRetryable(err):
		return Collided
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	if vedette.KindOf(err) == "" {
		err = d.translateError(err)
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
	// DurablePool is for writes that survive a power failure. It writes as WritePool does on databases that are not SQLite.
	DurablePool Pool = "durable"
)

// PoolStats returns the state of the pools of connections. It does no I/O.
func (d *DB) PoolStats() map[Pool]sql.DBStats {
	stats := map[Pool]sql.DBStats{WritePool: d.db.Stats()}
	if d.Reads != d.db {
		stats[ReadPool] = d.Reads.Stats()
	}
	return stats
}

// Size returns the bytes of all tables and indexes.
func (d *DB) Size(ctx context.Context) (size int64, err error) {
	err = d.WithTimeout(ctx, func(ctx context.Context) (err error) {
		size, err = d.Dialect.size(ctx, d.Reads)
		return err
	})
	return size, err
}
