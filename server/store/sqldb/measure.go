package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
)

// TransactionResult is how an attempt to write ended, for metrics.
type TransactionResult string

// The results of transactions.
const (
	Committed   TransactionResult = "committed"
	Collided    TransactionResult = "conflict"    // a deadlock or a serialization failure; retried
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

// slowWrite is how long an attempt to write takes before the log says so. Nobody else does: a disk that hardly writes gives no error,
// and the database answers readers.
const slowWrite = 5 * time.Second

// measure runs one attempt to write.
func (d *DB) measure(run func() error) error {
	var w slowWriteLog
	start := time.Now()
	slow := time.AfterFunc(slowWrite, func() { d.warnWhileSlow(start, &w) })
	err := run()
	w.ended.Store(true)
	took := time.Since(start)
	if !slow.Stop() && w.warned.Load() {
		d.Log.Info("a write that took long has ended", "database", d.name, "took", took.Round(time.Millisecond), "error", err)
	}
	if d.onTransaction != nil {
		d.onTransaction(d.resultOf(err), took)
	}
	return err
}

// slowWriteLog is what the log and a write know of each other.
type slowWriteLog struct {
	ended  atomic.Bool
	warned atomic.Bool // the log has a line about this write, and not only about others
}

// warnWhileSlow writes a line now, and again from time to time until the write has ended.
func (d *DB) warnWhileSlow(start time.Time, w *slowWriteLog) {
	if w.ended.Load() {
		return
	}
	if _, ok := d.slowWrites.Allow(); ok {
		w.warned.Store(true)
		d.Log.Warn("the database takes long to write, and changes and operations wait: look at its disk, and for locks of other programs",
			"database", d.name, "after", time.Since(start).Round(time.Second))
	}
	time.AfterFunc(slowWrite, func() { d.warnWhileSlow(start, w) })
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
