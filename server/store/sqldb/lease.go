package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/vedette-io/vedette/server/store/lease"
)

// databaseLease reads and writes the row of the lease. A nil lease lets every process write. SQLite needs no lease: the process
// locks the file, and the operating system unlocks it when the process ends.
type databaseLease struct {
	*lease.Holder
	db       *DB
	renewing chan struct{} // holds an element while a renewal is in progress
}

func newLease(db *DB, cfg Config) *databaseLease {
	return &databaseLease{db: db, Holder: lease.NewHolder(cfg.Server, cfg.Host), renewing: make(chan struct{}, 1)}
}

// acquire takes the lease. It waits for as long as another process that holds the lease may be
// alive. The error is vedette.Conflict if one is.
func (l *databaseLease) acquire(ctx context.Context) error {
	var first lease.Observation
	for {
		decision, row, err := l.tryAcquire(ctx, &first)
		switch {
		case err != nil:
			return err
		case decision == lease.Take:
			return nil
		case decision == lease.Refuse:
			return row.InUseError()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lease.RenewInterval / 4):
		}
	}
}

func (l *databaseLease) tryAcquire(ctx context.Context, first *lease.Observation) (decision lease.Decision, row lease.Row, err error) {
	began := time.Now()
	err = l.db.writeWithoutLease(ctx, func(ctx context.Context, tx *Tx) error {
		row, err = lockLeaseRow(ctx, tx)
		if err != nil {
			return err
		}
		if first.At.IsZero() {
			*first = lease.Observation{Row: row, At: began}
			l.logWait(row)
		}
		decision = first.Decide(row, began.Sub(first.At), l.TTL(row))
		if row.Token == l.Token {
			decision = lease.Take // it was taken by a commit whose answer was lost
		}
		if decision != lease.Take {
			return nil
		}
		_, err := tx.Exec(ctx, Named("take the lease", `UPDATE lease SET server = ?, host = ?, token = ?, taken = `+tx.Dialect.clockExpr+`, renewed = `+
			tx.Dialect.clockExpr+` WHERE id = 1`),
			string(l.Server), l.Host, l.Token)
		return err
	})
	if err == nil && decision == lease.Take {
		l.Confirm(began)
	}
	return decision, row, err
}

func selectLease(d *Dialect, suffix string) Statement {
	return Named("read the lease", `SELECT server, host, token, taken, renewed, `+d.clockExpr+` FROM lease WHERE id = 1`+suffix)
}

func scanLease(row Scanner) (r lease.Row, err error) {
	err = row.Scan(&r.Server, &r.Host, &r.Token, &r.Taken, &r.Renewed, &r.Now)
	return r, err
}

// lockLeaseRow reads the lease and locks its row until the transaction ends.
func lockLeaseRow(ctx context.Context, tx *Tx) (lease.Row, error) {
	row, err := scanLease(tx.QueryRow(ctx, selectLease(tx.Dialect, tx.Dialect.ForUpdate)))
	if errors.Is(err, sql.ErrNoRows) {
		_, err = tx.Exec(ctx, Named("insert the lease", `INSERT INTO lease (id, server, host, token, taken, renewed) VALUES (1, '', '', '', 0, 0)`))
	}
	return row, err
}

// logWait logs why the start takes longer.
func (l *databaseLease) logWait(row lease.Row) {
	if row.Token != "" {
		l.db.Log.Info("waiting until the lease of another process has expired",
			"server", row.Server, "host", row.Host, "seen", row.Age().Round(time.Millisecond), "atMost", l.TTL(row))
	}
}

// check returns an error unless the lease is ours. It renews the lease if that is not certain.
func (l *databaseLease) check(ctx context.Context) error {
	if l == nil {
		return nil
	}
	startedAt := time.Now()
	if fresh, err := l.IsFresh(); fresh || err != nil {
		return err
	}
	return l.renew(ctx, startedAt)
}

// CheckLease returns an error unless this process is certainly the only one that writes the
// database. It must be called before an answer from memory: the versions say only what this
// process has changed, and another one may have taken over while it was frozen or cut off.
func (d *DB) CheckLease(ctx context.Context) error {
	return d.WrapError("check the lease of the database", d.lease.check(ctx))
}

// checkBeforeCommit is check at the end of a transaction. If renewals take longer than
// lease.OwnTTL, for example because many readers wait for the same connections, nothing could be
// written any more; so the transaction itself reads whose the lease is. It does not lock the row,
// for the reason that renewRow gives.
func (l *databaseLease) checkBeforeCommit(ctx context.Context, tx *Tx) error {
	if l == nil {
		return nil
	}
	if fresh, err := l.IsFresh(); fresh || err != nil {
		return err
	}
	row, err := scanLease(tx.QueryRow(ctx, selectLease(tx.Dialect, "")))
	if err == nil && row.Token == l.Token {
		return nil
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("read the lease of the database: %w", err)
	}
	return l.MarkLost(row)
}

// renew renews the lease, unless it was renewed since a time. If the lease is not ours, the error
// is lease.ErrLost, now and forever.
func (l *databaseLease) renew(ctx context.Context, since time.Time) error {
	select {
	case l.renewing <- struct{}{}:
		defer func() { <-l.renewing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l.IsConfirmedSince(since) {
		return nil
	}
	began := time.Now()
	isOurs, row, err := l.renewRow(ctx)
	if err != nil {
		return l.db.WrapError("renew the lease of the database", err)
	}
	if !isOurs {
		return l.MarkLost(row)
	}
	l.Confirm(began)
	return nil
}

// renewRow renews the lease in one statement, because a server that is frozen between two would
// keep the row locked, and others could not find that the lease has expired. If the lease is not
// ours, it returns whose it is.
func (l *databaseLease) renewRow(ctx context.Context) (isOurs bool, row lease.Row, err error) {
	d := &l.db.Dialect
	err = l.db.withConn(ctx, l.db.db, func(ctx context.Context, conn *sql.Conn) error {
		n, err := exec(ctx, conn, d, Named("renew the lease", `UPDATE lease SET renewed = `+d.clockExpr+` WHERE id = 1 AND token = ?`), l.Token)
		isOurs = n > 0
		if err != nil || isOurs {
			return err
		}
		row, err = scanLease(conn.QueryRowContext(ctx, selectLease(d, "").SQL))
		if errors.Is(err, sql.ErrNoRows) {
			err = nil // deleted by hand
		}
		return err
	})
	return isOurs, row, err
}

// release gives up the lease, so that the next server need not wait. Its error is only logged: the
// next server waits.
func (l *databaseLease) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), lease.OwnTTL)
	defer cancel()
	err := l.db.writeWithoutLease(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, Named("release the lease", `UPDATE lease SET token = '' WHERE id = 1 AND token = ?`), l.Token)
		return err
	})
	if err != nil {
		l.db.Log.Warn("releasing the lease of the database failed; the next server waits until it expires", "error", err)
	}
	return nil
}

// KeepLease renews the lease until ctx ends. The error is lease.ErrLost if another server has taken
// the database over; the caller must stop then. Without a lease it only waits.
func (d *DB) KeepLease(ctx context.Context) error {
	if d.lease == nil {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(lease.RenewInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			err := d.lease.renew(ctx, time.Now())
			if errors.Is(err, lease.ErrLost) {
				return err
			}
			if err != nil && ctx.Err() == nil {
				d.Log.Warn("renewing the lease of the database failed; retrying", "error", err)
			}
		}
	}
}

// writeWithoutLease runs do in one transaction, without the semaphore and the lease.
func (d *DB) writeWithoutLease(ctx context.Context, do func(ctx context.Context, tx *Tx) error) error {
	return d.retryOnConflict(func() error {
		return d.withConn(ctx, d.db, func(ctx context.Context, conn *sql.Conn) error {
			return d.runTx(ctx, conn, do, func(context.Context, *Tx) error { return nil })
		})
	})
}

// IsOnlyWriter reports whether no other process inserts rows.
func (d *DB) IsOnlyWriter() bool { return d.Dialect.clockExpr == "" || d.lease != nil }
