package sqldb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pressly/goose/v3/lock"

	"github.com/vedette-io/vedette"
)

// migrationLockWait is how long a migration by another server may take.
const migrationLockWait = 5 * time.Minute

func migratingForTooLong(cause error) error {
	return vedette.Errorf(vedette.Unavailable, "another server has been migrating the database for more than %v: look at its log, and start this one again: %w",
		migrationLockWait, cause)
}

// migrationLock lets one server at a time migrate. The database releases it when the connection ends.
type migrationLock interface {
	acquire(ctx context.Context, conn *sql.Conn) error
	release(ctx context.Context, conn *sql.Conn) error
}

// transactionLock is an advisory lock of PostgreSQL, held by a transaction that stays open meanwhile. Behind a pooler such as
// PgBouncer, a session's lock would stay with a connection that is given to somebody else. Servers that lock by session, as earlier
// ones do, use the same lock.
type transactionLock struct{}

func (transactionLock) acquire(ctx context.Context, conn *sql.Conn) error {
	for _, statement := range []string{"BEGIN", "SET LOCAL idle_in_transaction_session_timeout = 0",
		fmt.Sprintf("SET LOCAL lock_timeout = %d", migrationLockWait.Milliseconds()), fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", lock.DefaultLockID)} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			_, rollbackErr := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
			if isPostgresLockTimeout(err) {
				err = migratingForTooLong(err)
			}
			return errors.Join(err, rollbackErr)
		}
	}
	return nil
}

func (transactionLock) release(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "COMMIT")
	return err
}

// userLock is a lock of MySQL's and MariaDB's sessions. Unlike goose's table lock, which has a lease, it is released when its connection
// ends, so that no server waits for one that crashed. It is taken before goose is called, because goose reads its table before it takes
// a lock, and MySQL makes a table visible before its first row.
type userLock struct{}

// migrationLockName contains a hash of the database's name, because user locks belong to the whole
// server. It has the maximum length that MySQL allows. MySQL has no MD5 from version 9.6 on.
const migrationLockName = `CONCAT('vedette ', LEFT(SHA2(DATABASE(), 256), 56))`

func (userLock) acquire(ctx context.Context, conn *sql.Conn) error {
	var acquired sql.NullInt64
	err := conn.QueryRowContext(ctx, `SELECT GET_LOCK(`+migrationLockName+`, ?)`, int(migrationLockWait/time.Second)).Scan(&acquired)
	if err == nil && acquired.Int64 != 1 {
		err = migratingForTooLong(errors.New("its lock is held"))
	}
	return err
}

func (userLock) release(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, `DO RELEASE_LOCK(`+migrationLockName+`)`)
	return err
}

// lockMigrations waits for other servers that migrate. The caller must migrate with the context that it returns, and call unlock;
// the lock also ends if the process does.
func (d *DB) lockMigrations(ctx context.Context) (locked context.Context, unlock func(), err error) {
	locker := d.Dialect.migrationLock
	if d.locksAreLocal.Load() {
		return d.lockCluster(ctx)
	}
	if locker == nil {
		return ctx, func() {}, nil
	}
	conn, err := d.migrator.Conn(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to lock the schema: %w", err)
	}
	if err := locker.acquire(ctx, conn); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("lock the schema: %w", err), conn.Close())
	}
	return ctx, func() {
		if err := errors.Join(locker.release(context.WithoutCancel(ctx), conn), conn.Close()); err != nil {
			d.Log.Warn("unlocking the schema failed; the lock ends with its connection", "error", err)
		}
	}, nil
}

// On a Galera cluster, locks are seen by one node only, so the lock of migrations is a row that its holder renews. Of two servers
// that take it at two nodes, one fails when it commits.
const createMigrationLock = `CREATE TABLE IF NOT EXISTS migration_lock (id INT NOT NULL PRIMARY KEY, token VARBINARY(64) NOT NULL, renewals BIGINT NOT NULL) ENGINE=InnoDB`

const (
	migrationLockRenewal = time.Second
	// migrationLockExpiry is how many rounds of a waiting server must pass without a renewal.
	migrationLockExpiry = 15
)

// lockWatch decides when the lock of a server that has died may be taken. It counts rounds in which a write of its own succeeded, and not
// seconds: a change of the schema stops all writes of a cluster, also the renewals, for as long as it takes.
type lockWatch struct {
	holder lockHolder
	rounds int // without a renewal
}

type lockHolder struct {
	token    string // empty if the lock is free
	renewals int64
}

// observe notes a round, and reports whether the lock may be taken from its holder.
func (w *lockWatch) observe(holder lockHolder, wrote bool) bool {
	if holder != w.holder {
		w.holder = holder
		w.rounds = 0
		return holder.token == ""
	}
	if wrote {
		w.rounds++
	}
	return holder.token == "" || w.rounds >= migrationLockExpiry
}

// lockCluster is lockMigrations for a Galera cluster.
func (d *DB) lockCluster(ctx context.Context) (context.Context, func(), error) {
	token := rand.Text()
	if err := d.takeClusterLock(ctx, token); err != nil {
		return nil, nil, fmt.Errorf("lock the schema: %w", err)
	}
	locked, cancel := context.WithCancelCause(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		d.renewClusterLock(locked, token, cancel)
	}()
	return locked, func() {
		cancel(nil)
		<-renewed
		if _, err := d.execMigrator(context.WithoutCancel(ctx), `UPDATE migration_lock SET token = '' WHERE id = 1 AND token = ?`, token); err != nil {
			d.Log.Warn("unlocking the schema failed; the next server waits until the lock expires", "error", err)
		}
	}, nil
}

// execMigrator executes a statement on the connections for migrations, again if it collides, and returns the number of rows that it found.
func (d *DB) execMigrator(ctx context.Context, statement string, args ...any) (n int64, err error) {
	err = d.retryOnConflict(ctx, func() (err error) {
		n, err = rowsAffected(d.migrator.ExecContext(ctx, statement, args...))
		return err
	})
	return n, err
}

func (d *DB) takeClusterLock(ctx context.Context, token string) error {
	for _, statement := range []string{createMigrationLock, `INSERT IGNORE INTO migration_lock (id, token, renewals) VALUES (1, '', 0)`} {
		if _, err := d.execMigrator(ctx, statement); err != nil {
			return err
		}
	}
	var watch lockWatch
	tick := time.NewTicker(migrationLockRenewal)
	defer tick.Stop()
	for start := time.Now(); ; {
		taken, err := d.tryClusterLock(ctx, token, &watch)
		switch {
		case err != nil || taken:
			return err
		case time.Since(start) > migrationLockWait:
			return migratingForTooLong(errors.New("its lock is renewed"))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func (d *DB) tryClusterLock(ctx context.Context, token string, watch *lockWatch) (taken bool, err error) {
	var holder lockHolder
	if err := d.migrator.QueryRowContext(ctx, `SELECT token, renewals FROM migration_lock WHERE id = 1`).Scan(&holder.token, &holder.renewals); err != nil {
		return false, err
	}
	if holder.token == token {
		return true, nil // it was taken by a statement whose answer was lost
	}
	wrote := true
	if holder.token != "" {
		_, err := d.execMigrator(ctx, `INSERT INTO migration_lock (id, token, renewals) VALUES (2, '', 1) ON DUPLICATE KEY UPDATE renewals = renewals + 1`)
		wrote = err == nil
	}
	if !watch.observe(holder, wrote) {
		return false, nil
	}
	n, err := d.execMigrator(ctx, `UPDATE migration_lock SET token = ?, renewals = renewals + 1 WHERE id = 1 AND token = ? AND renewals = ?`, token, holder.token,
		holder.renewals)
	return n > 0, err
}

// renewClusterLock renews the lock until ctx ends. If another server has taken it, the migration is canceled.
func (d *DB) renewClusterLock(ctx context.Context, token string, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(migrationLockRenewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n, err := d.execMigrator(ctx, `UPDATE migration_lock SET renewals = renewals + 1 WHERE id = 1 AND token = ?`, token)
		switch {
		case err == nil && n == 0:
			cancel(vedette.Errorf(vedette.Unavailable, "another server has taken the lock of migrations, because this one had not renewed it"))
			return
		case err != nil && ctx.Err() == nil:
			d.Log.Warn("renewing the lock of migrations failed; retrying", "error", err)
		}
	}
}
