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

// lease lets one server at a time write to a database that several can reach. Its row names the
// process that holds it, which renews it every second. A server cannot stop another one that is
// frozen or partitioned, but it can take the lease over if it has not been renewed for a while;
// the other one notices before it writes again.
//
// A nil lease lets every process write. SQLite needs no lease: the process locks the file, and the
// operating system unlocks it when the process ends.
type lease struct {
	store    *Store
	server   vedette.ServerID
	host     string
	token    string        // of this process
	renewing chan struct{} // holds an element while a renewal is in progress

	mu        sync.Mutex
	confirmed time.Time // when the last successful renewal began
	lost      error
}

const (
	renewInterval = time.Second
	// ownLeaseTTL is after which time without renewal a lease expires for the same server on the
	// same host. It is short because the restart has most likely ended the previous process.
	ownLeaseTTL = 3 * time.Second
	// otherLeaseTTL is the same for all other servers.
	otherLeaseTTL = 10 * time.Second
)

func newLease(s *Store, cfg Config) *lease {
	return &lease{store: s, server: cfg.Server, host: cfg.Host, token: rand.Text(), renewing: make(chan struct{}, 1)}
}

// leaseRow is the stored lease. Times are in microseconds of the database's clock.
type leaseRow struct {
	server, host, token string
	taken, renewed, now int64
}

func (r leaseRow) age() time.Duration { return time.Duration(r.now-r.renewed) * time.Microsecond }

// leaseObservation is the lease of another process, as it was first read.
type leaseObservation struct {
	row    leaseRow
	seenAt time.Time // by the local clock
}

// leaseDecision is what to do about a lease.
type leaseDecision string

const (
	takeLease   leaseDecision = "take"
	awaitLease  leaseDecision = "wait"
	refuseLease leaseDecision = "refuse"
)

// decide compares a lease with its first observation. If it was renewed since then, its holder is
// alive. Otherwise it has expired if it is older than ttl by the database's clock, or was watched
// for ttl, because that clock may have been set back. Its age alone does not count at the first
// observation, because the clock may just have been set forward.
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

// acquire takes the lease. It waits for as long as another process that holds the lease may be
// alive. The error is vedette.Conflict if one is.
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
		row, err = lockLeaseRow(ctx, tx)
		if err != nil {
			return err
		}
		if first.seenAt.IsZero() {
			*first = leaseObservation{row, began}
			l.logWait(row)
		}
		decision = first.decide(row, began.Sub(first.seenAt), l.ttlOf(row))
		if row.token == l.token {
			decision = takeLease // it was taken by a commit whose answer was lost
		}
		if decision != takeLease {
			return nil
		}
		_, err := tx.exec(ctx, `UPDATE lease SET server = ?, host = ?, token = ?, taken = `+tx.dialect.clockExpr+`, renewed = `+
			tx.dialect.clockExpr+` WHERE id = 1`,
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

// lockLeaseRow reads the lease and locks its row until the transaction ends.
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

// logWait logs why the start takes longer.
func (l *lease) logWait(row leaseRow) {
	if row.token != "" {
		l.store.log.Info("waiting until the lease of another process has expired",
			"server", row.server, "host", row.host, "seen", row.age().Round(time.Millisecond), "atMost", l.ttlOf(row))
	}
}

// inUseError names the process that holds the lease.
func inUseError(row leaseRow) error {
	return vedette.Errorf(vedette.Conflict,
		"the database is used by another server: %s on host %s, which started at %s and was last seen %v before %s by the database's clock. "+
			"Several servers on one database are not supported yet: stop the other server, or give this one a database of its own",
		row.server, row.host, fromMicros(row.taken).Format(time.RFC3339), max(0, row.age()).Round(time.Millisecond),
		fromMicros(row.now).Format(time.RFC3339))
}

func (l *lease) confirm(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.confirmed = at
}

// isFresh reports whether the lease is certainly ours. It measures time by both clocks, because
// the monotonic clock stands still while a machine is suspended, and the wall clock may be set. A
// wrong clock only causes an additional renewal.
func (l *lease) isFresh() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	elapsed := max(now.Sub(l.confirmed), now.Round(0).Sub(l.confirmed.Round(0)).Abs())
	return elapsed < ownLeaseTTL, l.lost
}

// check returns an error unless the lease is ours. It renews the lease if that is not certain.
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

// CheckLease returns an error unless this process is certainly the only one that writes the
// database. It must be called before an answer from memory: the versions say only what this
// process has changed, and another one may have taken over while it was frozen or cut off.
func (s *Store) CheckLease(ctx context.Context) error {
	return s.wrapError("check the lease of the database", s.lease.check(ctx))
}

// checkBeforeCommit is check at the end of a transaction. If renewals take longer than
// ownLeaseTTL, for example because many readers wait for the same connections, nothing could be
// written any more; so the transaction itself reads whose the lease is. It does not lock the row,
// for the reason that renewRow gives.
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
		return fmt.Errorf("read the lease of the database: %w", err)
	}
	return l.markLost(row)
}

// renew renews the lease, unless it was renewed since a time. If the lease is not ours, the error
// is ErrLeaseLost, now and forever.
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

// renewRow renews the lease in one statement, because a server that is frozen between two would
// keep the row locked, and others could not find that the lease has expired. If the lease is not
// ours, it returns whose it is.
func (l *lease) renewRow(ctx context.Context) (isOurs bool, row leaseRow, err error) {
	d := &l.store.dialect
	err = l.store.withConn(ctx, l.store.db, func(ctx context.Context, conn *sql.Conn) error {
		n, err := exec(ctx, conn, d, `UPDATE lease SET renewed = `+d.clockExpr+` WHERE id = 1 AND token = ?`, l.token)
		isOurs = n > 0
		if err != nil || isOurs {
			return err
		}
		row, err = scanLease(conn.QueryRowContext(ctx, selectLease(d)))
		if errors.Is(err, sql.ErrNoRows) {
			err = nil // deleted by hand
		}
		return err
	})
	return isOurs, row, err
}

// ErrLeaseLost means that another server has taken the database over.
var ErrLeaseLost = errors.New("the lease of the database is lost")

// markLost makes all further writes fail. Their error is vedette.Unavailable, so that the data is
// not blamed.
func (l *lease) markLost(row leaseRow) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	who := fmt.Sprintf("server %s on host %s took over the database at %s", row.server, row.host, fromMicros(row.taken).Format(time.RFC3339))
	if row.token == "" {
		who = "another server has used the database, or the lease was deleted"
	}
	l.lost = fmt.Errorf("%w: %w", vedette.Errorf(vedette.Unavailable, "%s, because this server had not renewed its lease; this server stops",
		who), ErrLeaseLost)
	return l.lost
}

// release gives up the lease, so that the next server need not wait. Its error is only logged: the
// next server waits.
func (l *lease) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), ownLeaseTTL)
	defer cancel()
	err := l.store.writeWithoutLease(ctx, func(ctx context.Context, tx *transaction) error {
		_, err := tx.exec(ctx, `UPDATE lease SET token = '' WHERE id = 1 AND token = ?`, l.token)
		return err
	})
	if err != nil {
		l.store.log.Warn("releasing the lease of the database failed; the next server waits until it expires", "error", err)
	}
	return nil
}

// KeepLease renews the lease until ctx ends. The error is ErrLeaseLost if another server has taken
// the database over; the caller must stop then. Without a lease it only waits.
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
				s.log.Warn("renewing the lease of the database failed; retrying", "error", err)
			}
		}
	}
}

// writeWithoutLease runs do in one transaction, without the semaphore and the lease.
func (s *Store) writeWithoutLease(ctx context.Context, do func(ctx context.Context, tx *transaction) error) error {
	return s.retryOnConflict(func() error {
		return s.withConn(ctx, s.db, func(ctx context.Context, conn *sql.Conn) error {
			return s.runTx(ctx, conn, do, func(context.Context, *transaction) error { return nil })
		})
	})
}
