package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// State is the state of a task. The values are stored.
type State string

// The states of a task:
//
//	running ──> succeeded | failed | retryable ──> running (AcquireTask)
const (
	Running   State = "running"
	Succeeded State = "succeeded"
	Failed    State = "failed"
	Retryable State = "retryable" // failed, and may continue from where it stopped
)

// Task is one of Clouddriver's tasks: one request, which one server executes as several
// operations.
type Task struct {
	ID          string // a ULID
	RequestID   string // identifies repeated requests; empty if the request has none
	Server      vedette.ServerID
	Application string
	User        string
	State       State
	Body        []byte // opaque JSON: history and results

	// By the clocks of the servers, to the microsecond.
	Created  time.Time
	LastSeen time.Time // when its server last reported that it runs
	Ended    time.Time // zero while it runs
}

const selectTasks = `SELECT id, COALESCE(request, ''), server, application, username, state, created, seen, ended, body FROM tasks`

var insertTaskStatement = sqldb.Named("insert a task", `INSERT INTO tasks (id, request, server, application, username, state, created, seen, ended, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)

var saveTaskStatement = sqldb.Named("save a task", `UPDATE tasks SET state = ?, body = ?, seen = ?, ended = ? WHERE id = ? AND server = ? AND state = 'running'`)

var acquireTaskStatement = sqldb.Named("acquire a task", `UPDATE tasks SET server = ?, state = 'running', seen = ?, ended = 0
	WHERE id = ? AND server = ? AND (state = 'retryable' OR state = 'running' AND server <> ?)`)

// Tasks keeps Clouddriver's tasks. Its methods may be called concurrently.
type Tasks struct {
	db    *sqldb.DB
	dicts *catalog.Dictionaries
}

// New returns the tasks of a database.
func New(db *sqldb.DB, dicts *catalog.Dictionaries) *Tasks { return &Tasks{db, dicts} }

// Prepare prepares what precedes an effect in a cluster: after a power failure no task may repeat a step.
func (ts *Tasks) Prepare(ctx context.Context) error {
	if ts.db.Dialect.Name != sqldb.SQLite {
		return nil
	}
	return ts.db.Prepare(ctx, sqldb.DurablePool, insertTaskStatement, saveTaskStatement, acquireTaskStatement)
}

// CreateTask stores a task, unless one with its RequestID is stored already: then it returns that
// one, and false, even if two servers are asked at the same time. The error is vedette.Conflict if
// another task has its ID.
func (ts *Tasks) CreateTask(ctx context.Context, t Task) (Task, bool, error) {
	action := fmt.Sprintf("store task %.60s", t.ID)
	args, err := ts.taskValues(ctx, &t)
	if err != nil {
		return Task{}, false, fmt.Errorf("%s: %w", action, err)
	}
	_, err = ts.db.ExecWrite(ctx, insertTaskStatement, args...)
	if err == nil {
		return t, true, nil
	}
	if !ts.db.Dialect.IsUniqueViolation(err) {
		return Task{}, false, ts.db.WrapError(action, err)
	}
	existing, err := ts.existingTask(ctx, &t)
	return existing, existing.ID == t.ID, ts.db.WrapError(action, err)
}

// existingTask returns the stored task with the same RequestID. It may be the new one itself, if
// the answer to its first insert was lost.
func (ts *Tasks) existingTask(ctx context.Context, t *Task) (Task, error) {
	idTaken := vedette.Errorf(vedette.Conflict, "another task has the id %s", t.ID)
	if t.RequestID == "" {
		return Task{}, idTaken
	}
	existing, err := ts.queryTask(ctx, ` WHERE request = ?`, t.RequestID)
	if errors.Is(err, sql.ErrNoRows) {
		err = idTaken
	}
	return existing, err
}

func (ts *Tasks) taskValues(ctx context.Context, t *Task) ([]any, error) {
	if err := sqldb.CheckID("task", t.ID); err != nil {
		return nil, err
	}
	if !sqldb.IsValidText(t.RequestID, sqldb.MaxShort) {
		return nil, vedette.Errorf(vedette.Invalid, "the request id %.60q of task %s is not valid text of at most %d bytes", t.RequestID, t.ID,
			sqldb.MaxShort)
	}
	request := sql.NullString{String: t.RequestID, Valid: t.RequestID != ""}
	body, err := ts.compressTaskBody(ctx, t.Body)
	t.setEnded()
	return []any{t.ID, request, sqldb.Sanitize(string(t.Server), sqldb.MaxShort), sqldb.Sanitize(t.Application, sqldb.MaxShort),
		sqldb.Sanitize(t.User, sqldb.MaxShort),
		string(t.State),
		sqldb.ToMicros(t.Created), sqldb.ToMicros(t.LastSeen), sqldb.ToMicros(t.Ended), body}, err
}

// setEnded makes a task's end agree with its state, because tasks are purged by their end.
func (t *Task) setEnded() {
	switch {
	case t.State == Running:
		t.Ended = time.Time{}
	case t.Ended.IsZero():
		t.Ended = time.Now()
	}
}

// compressTaskBody compresses without a dictionary, because tasks have little in common, and most
// of a long one repeats itself.
func (ts *Tasks) compressTaskBody(ctx context.Context, body []byte) (compressed []byte, err error) {
	d, err := ts.dicts.Get(ctx, 0)
	if err == nil {
		err = d.Compress(1, func(int) []byte { return body }, func(_ int, b []byte) { compressed = b })
	}
	return compressed, err
}

// SaveTask replaces a task's state and body. The error is vedette.Conflict if the task is another
// server's or does not run any more, but not if the save that ended it is repeated. It is
// vedette.NotFound if there is no such task.
func (ts *Tasks) SaveTask(ctx context.Context, t Task) error {
	action := fmt.Sprintf("save task %.60s", t.ID)
	body, err := ts.compressTaskBody(ctx, t.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	t.setEnded()
	n, err := ts.db.ExecWrite(ctx, saveTaskStatement,
		string(t.State), body, sqldb.ToMicros(t.LastSeen), sqldb.ToMicros(t.Ended), sqldb.Sanitize(t.ID,
			sqldb.MaxShort), sqldb.Sanitize(string(t.Server), sqldb.MaxShort))
	if err == nil && n == 0 {
		err = ts.saveConflict(ctx, &t)
	}
	return ts.db.WrapError(action, err)
}

// saveConflict returns the reason why a task could not be saved.
func (ts *Tasks) saveConflict(ctx context.Context, t *Task) error {
	existing, err := ts.Task(ctx, t.ID)
	switch {
	case err != nil:
		return err
	case existing.Server != t.Server:
		return vedette.Errorf(vedette.Conflict, "server %s has taken over task %s from %s", existing.Server, t.ID, t.Server)
	case existing.State == t.State && existing.Ended.UnixMicro() == t.Ended.UnixMicro():
		return nil
	}
	return vedette.Errorf(vedette.Conflict, "task %s has already ended as %s", t.ID, existing.State)
}

// Task returns one task. The error is vedette.NotFound if there is no such task, or no longer.
func (ts *Tasks) Task(ctx context.Context, id string) (Task, error) {
	where, args := sqldb.Conditions{sqldb.Equals("id", id, sqldb.MaxID)}.Where()
	t, err := ts.queryTask(ctx, where, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return t, vedette.Errorf(vedette.NotFound, "there is no task %.60s: it was never accepted, or has been deleted since", id)
	}
	return t, ts.db.WrapError(fmt.Sprintf("read task %.60s", id), err)
}

// MaxBytes limits the bodies of the tasks that RunningTasks reads.
const MaxBytes = 32 << 20

// RunningTasks returns at most limit of the tasks that run on any server, the oldest first, and
// fewer if their bodies exceed MaxBytes.
func (ts *Tasks) RunningTasks(ctx context.Context, limit int) ([]Task, error) {
	tasks, err := ts.queryTasks(ctx, MaxBytes, fmt.Sprintf(` WHERE state = 'running' ORDER BY id LIMIT %d`, max(0, limit)))
	return tasks, ts.db.WrapError("read the running tasks", err)
}

// TaskOwners returns the servers of all running tasks, by the task's ID.
func (ts *Tasks) TaskOwners(ctx context.Context) (map[string]vedette.ServerID, error) {
	owners := map[string]vedette.ServerID{}
	err := ts.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var id, server string
		err := rows.Scan(&id, &server)
		owners[id] = vedette.ServerID(server)
		return err
	}, sqldb.Named("read the owners of tasks", `SELECT id, server FROM tasks WHERE state = 'running'`))
	return owners, ts.db.WrapError("read the servers of the running tasks", err)
}

// TouchTasks records that a server was running at a time, and so all tasks that run on it.
func (ts *Tasks) TouchTasks(ctx context.Context, server vedette.ServerID, at time.Time) error {
	_, err := ts.db.ExecWrite(ctx, sqldb.Named("touch tasks", `UPDATE tasks SET seen = ? WHERE state = 'running' AND server = ?`), sqldb.ToMicros(at),
		sqldb.Sanitize(string(server), sqldb.MaxShort))
	return ts.db.WrapError("update the running tasks of server "+string(server), err)
}

// AbandonedTasks returns the running tasks whose server may have stopped: those of any server that
// were last seen before a time, and all of one server. That server must ignore those that it does
// run; when it starts, it runs none.
func (ts *Tasks) AbandonedTasks(ctx context.Context, server vedette.ServerID, seenBefore time.Time) ([]Task, error) {
	tasks, err := ts.queryTasks(ctx, 0, ` WHERE state = 'running' AND (server = ? OR seen < ?) ORDER BY id`, sqldb.Sanitize(string(server), sqldb.MaxShort),
		sqldb.ToMicros(seenBefore))
	return tasks, ts.db.WrapError("read the abandoned tasks", err)
}

// AcquireTask moves a task from one server to another and returns it, running. The task is either
// retryable, and then from and to may be equal, or its server has stopped, and the new one will
// end it. If several servers acquire a task at the same time, one succeeds and the error of the
// others is vedette.Conflict.
func (ts *Tasks) AcquireTask(ctx context.Context, id string, from, to vedette.ServerID) (Task, error) {
	action := fmt.Sprintf("acquire task %.60s from server %s", id, from)
	owner, newOwner := sqldb.Sanitize(string(from), sqldb.MaxShort), sqldb.Sanitize(string(to), sqldb.MaxShort)
	n, err := ts.db.ExecWrite(ctx, acquireTaskStatement,
		newOwner, sqldb.ToMicros(time.Now()), sqldb.Sanitize(id, sqldb.MaxShort), owner, newOwner)
	if err != nil {
		return Task{}, ts.db.WrapError(action, err)
	}
	t, err := ts.Task(ctx, id)
	if err == nil && n == 0 {
		err = vedette.Errorf(vedette.Conflict, "task %s is already %s on server %s", id, t.State, t.Server)
	}
	return t, ts.db.WrapError(action, err)
}

// PurgeTasks deletes at most limit of the tasks that ended before a time, the oldest first, and
// returns their number.
func (ts *Tasks) PurgeTasks(ctx context.Context, endedBefore time.Time, limit int) (int, error) {
	n, err := ts.db.Purge(ctx, "tasks", `ended > 0 AND ended < ?`, "ended", limit, sqldb.ToMicros(endedBefore))
	return n, ts.db.WrapError("purge tasks", err)
}

func (ts *Tasks) queryTask(ctx context.Context, where string, args ...any) (Task, error) {
	var t Task
	err := ts.db.QueryOne(ctx, func(row sqldb.Scanner) (err error) { t, err = scanTask(row); return err }, sqldb.Named("read a task",
		selectTasks+where), args...)
	if err == nil {
		err = ts.decompressTaskBody(ctx, &t)
	}
	return t, err
}

// queryTasks returns as many tasks as fit into maxBytes of bodies, or all if maxBytes is 0.
func (ts *Tasks) queryTasks(ctx context.Context, maxBytes int64, where string, args ...any) ([]Task, error) {
	tasks := []Task{}
	compressed := sqldb.NewByteBudget(maxBytes)
	decompressed := sqldb.NewByteBudget(maxBytes)
	err := ts.db.QueryEach(ctx, func(rows *sql.Rows) error {
		t, err := scanTask(rows)
		if err == nil && !compressed.Take(len(t.Body)) {
			err = sqldb.ErrBudgetExhausted
		}
		if err == nil {
			tasks = append(tasks, t)
		}
		return err
	}, sqldb.Named("read tasks", selectTasks+where), args...)
	if errors.Is(err, sqldb.ErrBudgetExhausted) {
		err = nil
	}
	for i := range tasks {
		err = errors.Join(err, ts.decompressTaskBody(ctx, &tasks[i]))
		if !decompressed.Take(len(tasks[i].Body)) {
			return tasks[:i:i], err
		}
	}
	return tasks, err
}

func (ts *Tasks) decompressTaskBody(ctx context.Context, t *Task) (err error) {
	t.Body, err = ts.dicts.Decompress(ctx, nil, t.Body)
	if err != nil {
		return fmt.Errorf("read the body of task %s: %w", t.ID, err)
	}
	return nil
}

func scanTask(row sqldb.Scanner) (Task, error) {
	var t Task
	var server, state string
	var created, seen, ended int64
	err := row.Scan(&t.ID, &t.RequestID, &server, &t.Application, &t.User, &state, &created, &seen, &ended, &t.Body)
	t.Server, t.State = vedette.ServerID(server), State(state)
	t.Created = sqldb.FromMicros(created)
	t.LastSeen = sqldb.FromMicros(seen)
	t.Ended = sqldb.FromMicros(ended)
	return t, err
}
