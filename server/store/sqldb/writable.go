package sqldb

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

var (
	// ErrDiskFull is in the chain of an error of a database whose disk is full. Retrying succeeds as soon as there
	// is room.
	ErrDiskFull = errors.New("the disk of the database is full")
	// ErrReadOnly is in the chain of an error of a database that takes no writes, for example a standby after
	// a failover.
	ErrReadOnly = errors.New("the database is read-only")
)

// causedError is an error with another one in its chain that says what the cause is.
type causedError struct {
	error
	cause error
}

// Unwrap returns both.
func (e causedError) Unwrap() []error { return []error{e.error, e.cause} }

// withCause adds a cause to an error.
func withCause(cause, err error) error { return causedError{error: err, cause: cause} }

// WriteProblem is why a database that answers takes no writes.
type WriteProblem string

// The problems.
const (
	DiskFull WriteProblem = "disk_full"
	ReadOnly WriteProblem = "read_only"
)

// WriteProblems returns all problems.
func WriteProblems() []WriteProblem { return []WriteProblem{DiskFull, ReadOnly} }

// Message says what a problem means, for users.
func (p WriteProblem) Message() string {
	switch p {
	case DiskFull:
		return "the disk of the database is full, so nothing is stored until there is room"
	case ReadOnly:
		return "the database is read-only, as after a failover, so nothing is stored"
	}
	return ""
}

// ProblemOf returns the problem that an error shows; empty for any other error.
func ProblemOf(err error) WriteProblem {
	switch {
	case errors.Is(err, ErrDiskFull):
		return DiskFull
	case errors.Is(err, ErrReadOnly):
		return ReadOnly
	}
	return ""
}

// writeState is what the writes so far say about the database.
type writeState struct {
	mu        sync.Mutex
	err       error // of the last write that showed a problem; nil if there was none, or it is over
	failed    time.Time
	succeeded bool // a write did, since then
}

// problemDuration is for how long after a failure a success does not end a problem: a full disk may have room
// for a small write, and none for the next one.
const problemDuration = 10 * time.Second

// ended notes how a write ended. Errors that show no problem say nothing: the database may not have got so far.
func (w *writeState) ended(err error, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case ProblemOf(err) != "":
		w.err = err
		w.failed = now
		w.succeeded = false
	case err == nil && w.err != nil:
		w.succeeded = true
	}
}

// current returns the error that shows the problem; nil if there is none.
func (w *writeState) current(now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.succeeded && now.Sub(w.failed) >= problemDuration {
		w.err = nil
	}
	return w.err
}

// noteWrite notes how a write ended.
func (d *DB) noteWrite(err error) {
	if err != nil && vedette.KindOf(err) == "" {
		err = d.translateError(err)
	}
	d.writes.ended(err, time.Now())
}

// WriteProblem returns why the database takes no writes; empty if it does, as far as is known. It does no I/O
// besides asking for the free space of a SQLite database's file system.
func (d *DB) WriteProblem() WriteProblem { return ProblemOf(d.writeError()) }

func (d *DB) writeError() error {
	if space, known := d.DiskSpace(); known && space.Free < minDiskSpace {
		return vedette.Errorf(vedette.Unavailable, "%w: %d bytes are free: free some space there", ErrDiskFull, space.Free)
	}
	return d.writes.current(time.Now())
}

// CheckWritable returns an error if the database takes no writes: what agents report waits then, and operations
// are rejected. While there is a problem, it writes something small, to notice its end.
func (d *DB) CheckWritable(ctx context.Context) error {
	err := d.writeError()
	if err == nil {
		return nil
	}
	if probeErr := d.probeWrite(ctx); ProblemOf(probeErr) != "" {
		err = probeErr
	} else {
		err = d.writeError()
	}
	return d.WrapError("write to the database", err)
}

// probeWrite writes a row that means nothing, because no account has an empty name.
func (d *DB) probeWrite(ctx context.Context) error {
	return d.WriteLowPriority(ctx, func(ctx context.Context, tx *Tx) error {
		return RecordSeen(ctx, tx, []Seen{{At: ToMicros(time.Now())}})
	})
}

// Seen says up to when something is complete: an account in a term, or whatever follows a process.
type Seen struct {
	ID   string // of the account or the process
	Term int64
	At   int64 // in microseconds
	// Process is that which the account follows; empty for none.
	Process string
}

// RecordSeen stores the rows of accounts instead of those that they have, unless these are of later terms.
func RecordSeen(ctx context.Context, tx *Tx, all []Seen) error {
	rows := make([][]any, len(all))
	for i, s := range all {
		followed := int64(0)
		if s.Process != "" {
			followed = s.Term
		}
		rows[i] = []any{s.ID, s.Term, s.At, s.Process, followed}
	}
	return tx.Insert(ctx, "freshness", freshnessColumns, rows, tx.Dialect.OnConflictUpdate(tx.Dialect.hasNoLaterTerm, []string{"term", "seen", "process", "followed"}))
}

// RecordProcessSeen stores the row of a process.
func RecordProcessSeen(ctx context.Context, tx *Tx, s Seen) error {
	return tx.Insert(ctx, "process_freshness", processFreshnessColumns, [][]any{{s.ID, s.At}}, tx.Dialect.OnConflictUpdate("1 = 1", []string{"seen"}))
}

var (
	freshnessColumns        = Columns("id text", "term bigint", "seen bigint", "process text", "followed bigint")
	processFreshnessColumns = Columns("id text", "seen bigint")
)

// DiskSpace is the room on the file system of a database.
type DiskSpace struct{ Free, Total uint64 }

// minDiskSpace is how much must be free: less is not enough for one batch of changes.
const minDiskSpace = 1 << 20

// DiskSpace returns the room on the file system of a SQLite database. It is not known of a database server.
func (d *DB) DiskSpace() (space DiskSpace, known bool) {
	if d.directory == "" {
		return DiskSpace{}, false
	}
	return diskSpace(d.directory)
}
