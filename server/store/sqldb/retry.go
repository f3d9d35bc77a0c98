package sqldb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// maxConflictRetries is how often a transaction is run again after conflicts. On a Galera cluster conflicts are common: each
	// node runs transactions as if it were alone, and those that collide fail when they commit.
	maxConflictRetries = 10
	// firstRetryDelay and maxRetryDelay limit the random pause before a retry. The limit doubles each time.
	firstRetryDelay = time.Millisecond
	maxRetryDelay   = 100 * time.Millisecond
)

// retryOnConflict runs a transaction again while the database says that it collided with another one, and has rolled it back. It gives up
// after maxConflictRetries, after queryTimeout, or when ctx ends, and returns the last error.
func (d *DB) retryOnConflict(ctx context.Context, run func() error) error {
	start := time.Now()
	for retries := 0; ; retries++ {
		err := d.measure(run)
		if err == nil || !d.Dialect.isRetryable(err) || retries == maxConflictRetries || time.Since(start) >= queryTimeout {
			return err
		}
		d.Log.Info("retrying transaction", "error", err)
		if !pauseBeforeRetry(ctx, retries) {
			return err
		}
	}
}

// pauseBeforeRetry waits for a random time, so that two transactions that have collided do not collide again. It reports false if ctx
// has ended.
func pauseBeforeRetry(ctx context.Context, retries int) bool {
	limit := min(firstRetryDelay<<retries, maxRetryDelay)
	timer := time.NewTimer(rand.N(limit)) //nolint:gosec // need not be unpredictable
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// retryOnOtherConnection marks an error of a transaction that was not committed, so that withConn runs the transaction again on another
// connection if the server has ended this one.
func (d *DB) retryOnOtherConnection(err error) error {
	if !recognizes(d.Dialect.isTerminated, err) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrBadConn, err)
}
