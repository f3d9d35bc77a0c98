package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
)

// replicas are databases that follow the one that takes writes, and are read instead of it where that changes nothing: a replica is read
// only after it has all commits that had ended when the read began. So readers see what they would see at the primary, and never
// something older than they have seen before (docs/decisions/0196). A replica that is not that far within replicaPatience, or does not
// answer, is left out.
type replicas struct {
	db    *DB
	floor *floor // nil if each replica waits by itself
	all   []*replica
	turn  atomic.Uint64
}

// replica is one of them.
type replica struct {
	name string
	pool *sql.DB
	// await waits until the replica has all commits up to a position of the primary. The error is errBehind if that takes longer
	// than ctx.
	await func(ctx context.Context, conn *sql.Conn, position string) error

	mu        sync.Mutex
	restUntil time.Time // it is not asked before
	isFailing bool
}

const (
	// replicaPatience is how long a reader waits for a replica before it reads from the primary.
	replicaPatience = 100 * time.Millisecond
	// replicaRest is for how long a replica is not asked that was behind, or has failed.
	replicaRest = time.Second
	// floorTimeout bounds the question for the position of the primary.
	floorTimeout = time.Second
)

var errBehind = errors.New("it has not applied the last commits yet")

// ReplicaResult is how a read ended that a replica could have answered.
type ReplicaResult string

// The results.
const (
	ReplicaRead   ReplicaResult = "replica" // a replica has answered
	ReplicaBehind ReplicaResult = "behind"  // no replica had all commits in time: the primary was read
	ReplicaFailed ReplicaResult = "failed"  // replicas did not answer: the primary was read
)

// ReplicaResults are all results.
var ReplicaResults = []ReplicaResult{ReplicaRead, ReplicaBehind, ReplicaFailed}

// openReplicas prepares connections to the replicas. It does not connect.
func (d *DB) openReplicas(ctx context.Context, cfg Config) error {
	if len(cfg.Replicas) == 0 {
		return nil
	}
	if d.Dialect.openReplica == nil {
		return vedette.Errorf(vedette.Invalid, "%s has no replicas that can be read: leave sql.readReplicas empty", d.Dialect.Name)
	}
	r := &replicas{db: d}
	for _, address := range cfg.Replicas {
		one, needsFloor, err := d.Dialect.openReplica(ctx, d, address, cfg.MaxConns)
		if err != nil {
			return fmt.Errorf("read replica %s: %w", nameOf(address), err)
		}
		one.name = nameOf(address)
		if needsFloor && r.floor == nil {
			r.floor = &floor{read: d.position}
		}
		r.all = append(r.all, one)
	}
	d.replicas = r
	return nil
}

// probeReplicas connects to each replica, and returns a text about them.
func (d *DB) probeReplicas(ctx context.Context, cfg Config) (string, error) {
	if err := d.openReplicas(ctx, cfg); err != nil || d.replicas == nil {
		return "", err
	}
	var errs []error
	for _, one := range d.replicas.all {
		ctx, cancel := context.WithTimeout(ctx, queryTimeout)
		if err := one.pool.PingContext(ctx); err != nil {
			errs = append(errs, fmt.Errorf("read replica %s: %w", one.name, err))
		}
		cancel()
	}
	return fmt.Sprintf(", %d read replicas", len(d.replicas.all)), errors.Join(errs...)
}

// QueryEachAnywhere is QueryEach, but may read from a replica that has all commits which had ended when it was called.
func (d *DB) QueryEachAnywhere(ctx context.Context, scan func(*sql.Rows) error, statement Statement, args ...any) error {
	isScanned := false
	err := d.replicas.read(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return queryEach(ctx, conn, &d.Dialect, func(rows *sql.Rows) error {
			isScanned = true
			return scan(rows)
		}, statement, args...)
	}, func(error) bool { return isScanned })
	if errors.Is(err, errReadPrimary) {
		return d.QueryEach(ctx, scan, statement, args...)
	}
	return err
}

// QueryOneAnywhere is QueryOne, but may read from a replica that has all commits which had ended when it was called.
func (d *DB) QueryOneAnywhere(ctx context.Context, scan func(Scanner) error, statement Statement, args ...any) error {
	err := d.replicas.read(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return scan(Row{conn.QueryRowContext(ctx, d.Dialect.bind(statement.SQL), args...), statement})
	}, func(err error) bool { return errors.Is(err, sql.ErrNoRows) })
	if errors.Is(err, errReadPrimary) {
		return d.QueryOne(ctx, scan, statement, args...)
	}
	return err
}

// errReadPrimary means that no replica has answered.
var errReadPrimary = errors.New("no replica can be read")

// read runs query at a replica. isFinal reports whether an error of it may not be followed by another try, because the caller has seen
// rows. The error is errReadPrimary if the caller should read from the primary.
func (r *replicas) read(ctx context.Context, query func(context.Context, *sql.Conn) error, isFinal func(error) bool) error {
	if r == nil {
		return errReadPrimary
	}
	one := r.choose(time.Now())
	if one == nil {
		r.db.onReplicaRead(ReplicaFailed)
		return errReadPrimary
	}
	err := r.readFrom(ctx, one, query)
	switch {
	case err == nil:
		one.succeed(r.db)
		r.db.onReplicaRead(ReplicaRead)
		return nil
	case ctx.Err() != nil:
		return err
	case isFinal(err):
		r.db.onReplicaRead(ReplicaRead)
		return err
	case errors.Is(err, ErrHistory):
		return err
	}
	one.fail(r.db, err)
	if errors.Is(err, errBehind) {
		r.db.onReplicaRead(ReplicaBehind)
	} else {
		r.db.onReplicaRead(ReplicaFailed)
	}
	return errReadPrimary
}

func (r *replicas) readFrom(ctx context.Context, one *replica, query func(context.Context, *sql.Conn) error) error {
	position := ""
	if r.floor != nil {
		var err error
		if position, err = r.floor.get(ctx); err != nil {
			return err
		}
	}
	if err := r.db.history.err(); err != nil { // the position may be one of another history
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	waitCtx, stopWaiting := context.WithTimeout(ctx, replicaPatience)
	defer stopWaiting()
	conn, err := one.pool.Conn(waitCtx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := one.await(waitCtx, conn, position); err != nil {
		if waitCtx.Err() != nil && ctx.Err() == nil {
			return errBehind
		}
		return err
	}
	return query(ctx, conn)
}

// choose returns the next replica that does not rest; nil if all do.
func (r *replicas) choose(now time.Time) *replica {
	for range r.all {
		one := r.all[r.turn.Add(1)%uint64(len(r.all))]
		if one.isAvailable(now) {
			return one
		}
	}
	return nil
}

func (o *replica) isAvailable(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if rest := o.restUntil.Sub(now); rest > 0 && rest <= replicaRest { // longer if the clock was set back
		return false
	}
	return true
}

func (o *replica) succeed(d *DB) {
	o.mu.Lock()
	wasFailing := o.isFailing
	o.isFailing = false
	o.mu.Unlock()
	if wasFailing {
		d.Log.Info("reading from a replica again", "replica", o.name)
	}
}

// fail lets the replica rest, and logs why unless it is known.
func (o *replica) fail(d *DB, err error) {
	o.mu.Lock()
	wasFailing := o.isFailing
	o.isFailing = true
	o.restUntil = time.Now().Add(replicaRest)
	o.mu.Unlock()
	if !wasFailing {
		d.Log.Warn("a read replica cannot be used: reading from the primary until it can", "replica", o.name, "error", err)
	}
}

// floor asks the primary for its position. Callers share answers to questions that were asked after they came. It is safe for concurrent
// use.
type floor struct {
	read func(ctx context.Context) (string, error)

	mu      sync.Mutex
	isBusy  bool
	waiting *floorAnswer // to the next question; nil if nobody waits
}

type floorAnswer struct {
	done     chan struct{} // closed when the rest is set
	position string
	err      error
}

// get returns a position that is not before any commit that has ended before the call.
func (f *floor) get(ctx context.Context) (string, error) {
	f.mu.Lock()
	if f.waiting == nil {
		f.waiting = &floorAnswer{done: make(chan struct{})}
	}
	answer := f.waiting
	if !f.isBusy {
		f.isBusy = true
		go f.ask(context.WithoutCancel(ctx))
	}
	f.mu.Unlock()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-answer.done:
		return answer.position, answer.err
	}
}

// ask asks for as long as callers wait.
func (f *floor) ask(ctx context.Context) {
	for {
		f.mu.Lock()
		answer := f.waiting
		f.waiting = nil
		f.isBusy = answer != nil
		f.mu.Unlock()
		if answer == nil {
			return
		}
		timeoutCtx, cancel := context.WithTimeout(ctx, floorTimeout)
		answer.position, answer.err = f.read(timeoutCtx)
		cancel()
		close(answer.done)
	}
}

// position returns the position of the primary's log.
func (d *DB) position(ctx context.Context) (position string, err error) {
	err = d.withConn(ctx, d.db, func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, d.Dialect.positionQuery).Scan(&position)
	})
	return position, err
}
