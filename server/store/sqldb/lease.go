package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vedette-io/vedette/server/store/lease"
)

// databaseLease reads and writes the row that says that this process may write: the one of table lease for a server that uses the
// database alone, its own in table servers for one that shares it. A nil lease lets every process write. SQLite needs no lease: the
// process locks the file, and the operating system unlocks it when the process ends.
type databaseLease struct {
	*lease.Holder
	db       *DB
	conns    *sql.DB // for renewals
	table    leaseTable
	renewing chan struct{} // holds an element while a renewal is in progress
}

// leaseTable is where a lease is. Its statements have the arguments that args returns.
type leaseTable struct {
	read, renew, release Statement
	args                 []any // of read; the others have the token, too
	// take makes the row that of the holder, once all others have ended.
	take func(ctx context.Context, tx *Tx) error
	// blocks reports whether a row of a process prevents that this one takes the lease.
	blocks func(lease.Row) bool
}

func newLease(db *DB, cfg Config) *databaseLease {
	l := &databaseLease{db: db, Holder: lease.NewHolder(cfg.Server, cfg.Host), conns: db.db, renewing: make(chan struct{}, 1)}
	if cfg.token != "" {
		l.Token = cfg.token
	}
	if cfg.Sharing == nil {
		l.table = l.exclusiveTable()
	} else {
		l.table = l.serversTable(*cfg.Sharing)
		l.conns = db.renewals
	}
	return l
}

func (l *databaseLease) exclusiveTable() leaseTable {
	clock := l.db.Dialect.clockExpr
	return leaseTable{
		read:    selectLease(&l.db.Dialect, ""),
		renew:   Named("renew the lease", `UPDATE lease SET renewed = `+clock+` WHERE id = 1 AND token = ?`),
		release: Named("release the lease", `UPDATE lease SET token = '' WHERE id = 1 AND token = ?`),
		take:    l.takeAlone,
		blocks:  func(lease.Row) bool { return true },
	}
}

// takeAlone takes the lease. Rows of servers that shared the database are deleted: all of them have ended.
func (l *databaseLease) takeAlone(ctx context.Context, tx *Tx) error {
	if _, err := tx.Exec(ctx, Named("take the lease", `UPDATE lease SET server = ?, host = ?, token = ?, taken = `+tx.Dialect.clockExpr+`, renewed = `+
		tx.Dialect.clockExpr+` WHERE id = 1`), string(l.Server), l.Host, l.Token); err != nil {
		return err
	}
	return l.endSharing(ctx, tx)
}

// acquire takes the lease. It waits for as long as another process that prevents it may be
// alive. The error is vedette.Conflict if one is.
func (l *databaseLease) acquire(ctx context.Context) error {
	first := map[string]lease.Observation{}
	for {
		decision, row, err := l.tryAcquire(ctx, first)
		switch {
		case err != nil:
			return err
		case decision == lease.Take:
			return nil
		case decision == lease.Refuse:
			return l.InUseError(row)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lease.RenewInterval / 4):
		}
	}
}

// tryAcquire takes the lease if no other process prevents it. Otherwise it returns one that does. The observations are those of earlier
// calls, by the tokens of processes.
func (l *databaseLease) tryAcquire(ctx context.Context, first map[string]lease.Observation) (
	decision lease.Decision, blocker lease.Row, err error) {
	began := time.Now()
	err = l.db.writeWithoutLease(ctx, func(ctx context.Context, tx *Tx) error {
		rows, err := l.lockRows(ctx, tx)
		if err != nil {
			return err
		}
		decision, blocker = l.decide(rows, first, began)
		if decision != lease.Take {
			return nil
		}
		return l.table.take(ctx, tx)
	})
	if err == nil && decision == lease.Take {
		l.Confirm(began)
	}
	return decision, blocker, err
}

// decide returns what the rows of all processes together mean.
func (l *databaseLease) decide(rows []lease.Row, first map[string]lease.Observation, began time.Time) (lease.Decision, lease.Row) {
	decision, blocker := lease.Take, lease.Row{}
	for _, row := range rows {
		if row.Token == "" || row.Token == l.Token || !l.table.blocks(row) {
			continue // free, or taken by a commit whose answer was lost
		}
		key := string(row.Table) + " " + row.Server
		observed, known := first[key]
		if !known {
			observed = lease.Observation{Row: row, At: began}
			first[key] = observed
			l.logWait(row)
		}
		switch observed.Decide(row, began.Sub(observed.At), l.TTL(row)) {
		case lease.Refuse:
			return lease.Refuse, row
		case lease.Wait:
			decision, blocker = lease.Wait, row
		case lease.Take:
		}
	}
	return decision, blocker
}

func selectLease(d *Dialect, suffix string) Statement {
	return Named("read the lease", `SELECT server, host, token, taken, renewed, `+d.clockExpr+` FROM lease WHERE id = 1`+suffix)
}

func scanLease(row Scanner) (r lease.Row, err error) {
	err = row.Scan(&r.Server, &r.Host, &r.Token, &r.Taken, &r.Renewed, &r.Now)
	return r, err
}

// lockRows reads the leases of all processes. It writes the row of table lease, also to lock it: so processes that start wait for each
// other, and if they use different nodes of a Galera cluster, which does not lock rows, one of them fails.
func (l *databaseLease) lockRows(ctx context.Context, tx *Tx) ([]lease.Row, error) {
	n, err := tx.Exec(ctx, Named("lock the lease", `UPDATE lease SET id = 1 WHERE id = 1`))
	if err != nil {
		return nil, err
	}
	row, err := scanLease(tx.QueryRow(ctx, selectLease(tx.Dialect, tx.Dialect.ForUpdate)))
	if errors.Is(err, sql.ErrNoRows) && n == 0 {
		_, err = tx.Exec(ctx, Named("insert the lease", `INSERT INTO lease (id, server, host, token, taken, renewed) VALUES (1, '', '', '', 0, 0)`))
	}
	if err != nil {
		return nil, err
	}
	row.Table = lease.Exclusive
	rows := []lease.Row{row}
	if !l.db.hasServersTable {
		return rows, nil
	}
	err = tx.QueryEach(ctx, func(r *sql.Rows) error {
		row, err := scanLease(r)
		row.Table = lease.Shared
		rows = append(rows, row)
		return err
	}, selectServerLeases(tx.Dialect, ""))
	return rows, err
}

// logWait logs why the start takes longer.
func (l *databaseLease) logWait(row lease.Row) {
	l.db.Log.Info("waiting until the lease of another process has expired",
		"server", row.Server, "host", row.Host, "seen", row.Age().Round(time.Millisecond), "atMost", l.TTL(row))
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
	row, err := scanLease(tx.QueryRow(ctx, l.table.read, l.table.args...))
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
	var isOurs bool
	var row lease.Row
	err := l.db.retryOnConflict(ctx, func() (err error) { isOurs, row, err = l.renewRow(ctx); return err })
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
	err = l.db.withConn(ctx, l.conns, func(ctx context.Context, conn *sql.Conn) error {
		n, err := exec(ctx, conn, d, l.table.renew, l.argsWithToken()...)
		isOurs = n > 0
		if err != nil || isOurs {
			return err
		}
		row, err = scanLease(conn.QueryRowContext(ctx, d.bind(l.table.read.SQL), l.table.args...))
		if errors.Is(err, sql.ErrNoRows) {
			err = nil // deleted by hand
		}
		return err
	})
	return isOurs, row, err
}

func (l *databaseLease) argsWithToken() []any { return append(slices.Clone(l.table.args), l.Token) }

// release gives up the lease, so that the next server need not wait. Its error is only logged: the
// next server waits.
func (l *databaseLease) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), lease.OwnTTL)
	defer cancel()
	err := l.db.writeWithoutLease(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, l.table.release, l.argsWithToken()...)
		return err
	})
	if err != nil {
		l.db.Log.Warn("releasing the lease of the database failed; the next server waits until it expires", "error", err)
	}
	return nil
}

// HasAnswered reports whether the database has answered within the last seconds, as far as its lease shows. It does no I/O.
func (d *DB) HasAnswered() bool {
	if d.lease == nil {
		return true
	}
	fresh, _ := d.lease.IsFresh()
	return fresh
}

// AbandonLease makes all further writes fail, because this process has lost another database.
func (d *DB) AbandonLease() {
	if d.lease != nil {
		_ = d.lease.MarkLost(lease.Row{})
	}
}

// KeepLease renews the lease until ctx ends. The error is lease.ErrLost if another server has taken
// the database over, and ErrHistory if another database server has; the caller must stop then. Without a lease it only waits.
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
			if err := d.history.err(); err != nil {
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
	return d.retryOnConflict(ctx, func() error {
		return d.withConn(ctx, d.db, func(ctx context.Context, conn *sql.Conn) error {
			return d.runTx(ctx, conn, do, func(context.Context, *Tx) error { return nil })
		})
	})
}

// KnowsWrites reports whether the versions in memory say what is written: this process is the only one that does, or it is told by the
// others.
func (d *DB) KnowsWrites() bool { return d.IsOnlyWriter() || d.IsShared() }

// IsOnlyWriter reports whether no other process inserts rows.
func (d *DB) IsOnlyWriter() bool {
	return d.Dialect.clockExpr == "" || d.lease != nil && !d.IsShared()
}
