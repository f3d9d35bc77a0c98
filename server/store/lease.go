package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// lease lets one server at a time write to a database that many could reach. Its
// row names the process that has it, which renews it each second. A server that
// can't stop another one, because that is frozen or cut off, can still take the
// lease over once it has not been renewed for a while; the other one finds out
// before it writes again.
//
// A nil lease lets everyone write. SQLite needs none: its file is locked by the
// process, and the system frees it when that ends.
type lease struct {
	store    *Store
	server   vedette.ServerID
	host     string
	token    string        // of this process
	renewing chan struct{} // holds a token while the database is asked to renew

	mu        sync.Mutex
	confirmed time.Time // when the database was last asked, successfully
	lost      error
}

const (
	renewInterval = time.Second
	// ownLeaseTTL is for how long a lease counts that is not renewed, to who starts the
	// same server on the same host again: little is risked, for most likely that
	// has killed the one before.
	ownLeaseTTL = 3 * time.Second
	// otherLeaseTTL is the same to every other server.
	otherLeaseTTL = 10 * time.Second
)

func newLease(s *Store, cfg Config) *lease {
	return &lease{store: s, server: cfg.Server, host: cfg.Host, token: rand.Text(), renewing: make(chan struct{}, 1)}
}

// leaseRow is the lease as it is stored. Times are microseconds by the database's
// clock.
type leaseRow struct {
	server, host, token string
	taken, renewed, now int64
}

func (r leaseRow) age() time.Duration { return time.Duration(r.now-r.renewed) * time.Microsecond }

// leaseObservation is a lease of another process, as it was first seen.
type leaseObservation struct {
	row    leaseRow
	seenAt time.Time // by our own clock
}

// leaseDecision is what to do about a lease.
type leaseDecision string

const (
	takeLease   leaseDecision = "take"
	awaitLease  leaseDecision = "wait"
	refuseLease leaseDecision = "refuse"
)

// decide decides by the second sight of a lease. A lease that was renewed since the
// first is alive. One that was not is over when it is old by the database's
// clock, or has been watched for as long: that clock may have been set back.
// Its age alone does not count at first sight, for the clock may just have been
// set forward.
func (o leaseObservation) decide(row leaseRow, watched, ttl time.Duration) leaseDecision {
	switch {
	case row.token == "":
		return takeLease
	case row.token != o.row.token || row.renewed != o.row.renewed:
		return refuseLease
	case watched >= renewInterval*3/2 && (row.age() >= ttl || watched >= ttl):
		return takeLease
	}
	return awaitLease
}

// acquire takes the lease, which takes as long as another process may be alive that
// has it. The error is vedette.Conflict where one is.
func (l *lease) acquire(ctx context.Context) error {
	var first leaseObservation
	for {
		decision, row, err := l.tryAcquire(ctx, &first)
		switch {
		case err != nil:
			return err
		case decision == takeLease:
			return nil
		case decision == refuseLease:
			return inUseError(row)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(renewInterval / 4):
		}
	}
}

func (l *lease) tryAcquire(ctx context.Context, first *leaseObservation) (decision leaseDecision, row leaseRow, err error) {
	began := time.Now()
	err = l.store.writeWithoutLease(ctx, func(ctx context.Context, tx *transaction) error {
		if row, err = lockLeaseRow(ctx, tx); err != nil {
			return err
		}
		if first.seenAt.IsZero() {
			*first = leaseObservation{row, began}
			l.logWait(row)
		}
		if decision = first.decide(row, began.Sub(first.seenAt), l.ttlOf(row)); row.token == l.token {
			decision = takeLease // by a commit whose answer was lost
		}
		if decision != takeLease {
			return nil
		}
		_, err := tx.exec(ctx, `UPDATE lease SET server = ?, host = ?, token = ?, taken = `+tx.dialect.clockExpr+`, renewed = `+tx.dialect.clockExpr+` WHERE id = 1`,
			string(l.server), l.host, l.token)
		return err
	})
	if err == nil && decision == takeLease {
		l.confirm(began)
	}
	return decision, row, err
}

func selectLease(d *dialect) string {
	return `SELECT server, host, token, taken, renewed, ` + d.clockExpr + ` FROM lease WHERE id = 1`
}

func scanLease(row scanner) (r leaseRow, err error) {
	err = row.Scan(&r.server, &r.host, &r.token, &r.taken, &r.renewed, &r.now)
	return r, err
}

// lockLeaseRow reads the lease and keeps others from changing it until the
// transaction ends.
func lockLeaseRow(ctx context.Context, tx *transaction) (leaseRow, error) {
	row, err := scanLease(tx.queryRow(ctx, selectLease(tx.dialect)+tx.dialect.forUpdate))
	if errors.Is(err, sql.ErrNoRows) {
		_, err = tx.exec(ctx, `INSERT INTO lease (id, server, host, token, taken, renewed) VALUES (1, '', '', '', 0, 0)`)
	}
	return row, err
}

func (l *lease) ttlOf(row leaseRow) time.Duration {
	if row.server == string(l.server) && row.host == l.host {
		return ownLeaseTTL
	}
	return otherLeaseTTL
}

// logWait says why the start takes longer.
func (l *lease) logWait(row leaseRow) {
	if row.token != "" {
		l.store.log.Info("another process has used the database, and has not said that it ended; it is watched for a sign of life",
			"server", row.server, "host", row.host, "seen", row.age().Round(time.Millisecond), "atMost", l.ttlOf(row))
	}
}

// inUseError names the process that has the lease.
func inUseError(row leaseRow) error {
	return vedette.Errorf(vedette.Conflict, "the database is used by another server: %s on host %s, which started at %s and was last seen %v before %s by the database's clock. "+
		"Several servers on one database are not supported yet: stop that one, or give this one a database of its own",
		row.server, row.host, fromMicros(row.taken).Format(time.RFC3339), max(0, row.age()).Round(time.Millisecond), fromMicros(row.now).Format(time.RFC3339))
}

func (l *lease) confirm(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.confirmed = at
}

// isFresh reports whether the lease is surely ours. Time is measured by both of the
// clocks that we have: the monotonic one stands still while a machine is suspended,
// and the other one may be set. Either only makes us ask the database.
func (l *lease) isFresh() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	elapsed := max(now.Sub(l.confirmed), now.Round(0).Sub(l.confirmed.Round(0)).Abs())
	return elapsed < ownLeaseTTL, l.lost
}

// check returns an error unless the lease is ours, and renews it where that is not
// sure.
func (l *lease) check(ctx context.Context) error {
	if l == nil {
		return nil
	}
	startedAt := time.Now()
	if fresh, err := l.isFresh(); fresh || err != nil {
		return err
	}
	return l.renew(ctx, startedAt)
}

// checkBeforeCommit is check for the end of a transaction, before it is committed. Where a
// renewal takes longer than the lease counts, as when many readers wait for the same
// connections, the transaction asks itself whose the lease is, or nothing could be
// written any more. It does not lock the row, as renewRow says why.
func (l *lease) checkBeforeCommit(ctx context.Context, tx *transaction) error {
	if l == nil {
		return nil
	}
	if fresh, err := l.isFresh(); fresh || err != nil {
		return err
	}
	row, err := scanLease(tx.queryRow(ctx, selectLease(tx.dialect)))
	if err == nil && row.token == l.token {
		return nil
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("read whose the lease of the database is: %w", err)
	}
	return l.markLost(row)
}

// renew asks the database whether the lease is still ours, unless it has been asked
// since. The error is lost's where it is not, and stays that.
func (l *lease) renew(ctx context.Context, since time.Time) error {
	select {
	case l.renewing <- struct{}{}:
		defer func() { <-l.renewing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l.confirmedSince(since) {
		return nil
	}
	began := time.Now()
	isOurs, row, err := l.renewRow(ctx)
	if err != nil {
		return l.store.wrapError("renew the lease of the database", err)
	}
	if !isOurs {
		return l.markLost(row)
	}
	l.confirm(began)
	return nil
}

func (l *lease) confirmedSince(t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.confirmed.Before(t)
}

// renewRow renews in one statement: a server that is frozen between two would keep
// the row locked, and others from finding that the lease is over. Where the lease
// is not ours, it returns whose it is.
func (l *lease) renewRow(ctx context.Context) (isOurs bool, row leaseRow, err error) {
	d := &l.store.dialect
	err = l.store.withConn(ctx, l.store.db, func(ctx context.Context, conn *sql.Conn) error {
		n, err := exec(ctx, conn, d, `UPDATE lease SET renewed = `+d.clockExpr+` WHERE id = 1 AND token = ?`, l.token)
		if isOurs = n > 0; err != nil || isOurs {
			return err
		}
		if row, err = scanLease(conn.QueryRowContext(ctx, selectLease(d))); errors.Is(err, sql.ErrNoRows) {
			err = nil // deleted by hand
		}
		return err
	})
	return isOurs, row, err
}

// ErrLeaseLost says that another server has taken the database over.
var ErrLeaseLost = errors.New("the lease of the database is lost")

// markLost notes that nothing may be written any more. Writers are told that the
// database is unavailable, so that nobody takes their data for the reason.
func (l *lease) markLost(row leaseRow) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	who := fmt.Sprintf("server %s on host %s has taken the database over since %s", row.server, row.host, fromMicros(row.taken).Format(time.RFC3339))
	if row.token == "" {
		who = "another server has used the database meanwhile, or its lease was deleted"
	}
	l.lost = fmt.Errorf("%w: %w", vedette.Errorf(vedette.Unavailable, "%s, as this one had not renewed its lease; this one ends", who), ErrLeaseLost)
	return l.lost
}

// release gives the lease up, so that the next server need not wait. It does not
// fail: without a database, the next one waits.
func (l *lease) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), ownLeaseTTL)
	defer cancel()
	err := l.store.writeWithoutLease(ctx, func(ctx context.Context, tx *transaction) error {
		_, err := tx.exec(ctx, `UPDATE lease SET token = '' WHERE id = 1 AND token = ?`, l.token)
		return err
	})
	if err != nil {
		l.store.log.Warn("the lease of the database could not be given up; the next server waits until it is over", "error", err)
	}
	return nil
}

// KeepLease renews the lease until ctx ends. Its error is ErrLeaseLost where
// another server has taken the database over; the caller must end then. Without a
// lease it only waits.
func (s *Store) KeepLease(ctx context.Context) error {
	if s.lease == nil {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(renewInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			err := s.lease.renew(ctx, time.Now())
			if errors.Is(err, ErrLeaseLost) {
				return err
			}
			if err != nil && ctx.Err() == nil {
				s.log.Warn("the lease of the database could not be renewed; tried again", "error", err)
			}
		}
	}
}

// writeWithoutLease runs do in one transaction, past the turnstile and the lease.
func (s *Store) writeWithoutLease(ctx context.Context, do func(ctx context.Context, tx *transaction) error) error {
	return s.retryOnConflict(func() error {
		return s.withConn(ctx, s.db, func(ctx context.Context, conn *sql.Conn) error {
			return s.runTx(ctx, conn, do, func(context.Context, *transaction) error { return nil })
		})
	})
}
