package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/vedette-io/vedette"
)

// TaskState says how far a task is. The values are stored.
type TaskState string

// The states of a task:
//
//	running ──> succeeded | failed | retryable ──> running (AcquireTask)
const (
	TaskRunning   TaskState = "running"
	TaskSucceeded TaskState = "succeeded"
	TaskFailed    TaskState = "failed"
	TaskRetryable TaskState = "retryable" // failed, and may be run once more from where it stopped
)

// TaskRow is one of Clouddriver's tasks: what somebody asked for in one request,
// that one server carries out in several operations.
type TaskRow struct {
	ID          string // a ULID
	RequestID   string // by which the same request is known again; empty where it has none
	Server      vedette.ServerID
	Application string
	User        string
	State       TaskState
	Body        []byte // JSON that the store does not look into: history and results

	// By the clocks of the servers, to the microsecond.
	Created  time.Time
	LastSeen time.Time // when its server last said that it runs it
	Ended    time.Time // zero while it runs
}

const selectTasks = `SELECT id, COALESCE(request, ''), server, application, username, state, created, seen, ended, body FROM tasks`

const insertTaskStatement = `INSERT INTO tasks (id, request, server, application, username, state, created, seen, ended, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const saveTaskStatement = `UPDATE tasks SET state = ?, body = ?, seen = ?, ended = ? WHERE id = ? AND server = ? AND state = 'running'`

const acquireTaskStatement = `UPDATE tasks SET server = ?, state = 'running', seen = ?, ended = 0
	WHERE id = ? AND server = ? AND (state = 'retryable' OR state = 'running' AND server <> ?)`

// CreateTask stores a task, unless one with its RequestID is stored already: then
// that is returned, and false, also where two servers are asked at once. The
// error is vedette.Conflict where another task has its ID.
func (s *Store) CreateTask(ctx context.Context, t TaskRow) (TaskRow, bool, error) {
	action := fmt.Sprintf("store task %.60s", t.ID)
	args, err := s.taskValues(ctx, &t)
	if err != nil {
		return TaskRow{}, false, fmt.Errorf("%s: %w", action, err)
	}
	if _, err = s.execWrite(ctx, insertTaskStatement, args...); err == nil {
		return t, true, nil
	}
	if !s.dialect.isUniqueViolation(err) {
		return TaskRow{}, false, s.wrapError(action, err)
	}
	existing, err := s.existingTask(ctx, &t)
	return existing, existing.ID == t.ID, s.wrapError(action, err)
}

// existingTask finds the task that has taken the place of a new one. It may be the same
// one, where the answer to its first insert was lost.
func (s *Store) existingTask(ctx context.Context, t *TaskRow) (TaskRow, error) {
	idTaken := vedette.Errorf(vedette.Conflict, "another task has the id %s", t.ID)
	if t.RequestID == "" {
		return TaskRow{}, idTaken
	}
	existing, err := s.queryTask(ctx, ` WHERE request = ?`, t.RequestID)
	if errors.Is(err, sql.ErrNoRows) {
		err = idTaken
	}
	return existing, err
}

func (s *Store) taskValues(ctx context.Context, t *TaskRow) ([]any, error) {
	if err := checkID("task", t.ID); err != nil {
		return nil, err
	}
	if !isValidText(t.RequestID, maxShort) {
		return nil, vedette.Errorf(vedette.Invalid, "the request id %.60q of task %s is longer than %d bytes or no text", t.RequestID, t.ID, maxShort)
	}
	request := sql.NullString{String: t.RequestID, Valid: t.RequestID != ""}
	body, err := s.compressTaskBody(ctx, t.Body)
	t.setEnded()
	return []any{t.ID, request, sanitize(string(t.Server), maxShort), sanitize(t.Application, maxShort), sanitize(t.User, maxShort), string(t.State),
		toMicros(t.Created), toMicros(t.LastSeen), toMicros(t.Ended), body}, err
}

// setEnded makes a task's end agree with its state: by it the task is purged.
func (t *TaskRow) setEnded() {
	switch {
	case t.State == TaskRunning:
		t.Ended = time.Time{}
	case t.Ended.IsZero():
		t.Ended = time.Now()
	}
}

// compressTaskBody compresses without a dictionary: tasks resemble one another little, and
// most of a long one is its own repetition.
func (s *Store) compressTaskBody(ctx context.Context, body []byte) (compressed []byte, err error) {
	d, err := s.dicts.get(ctx, s, 0)
	if err == nil {
		err = d.Compress(1, func(int) []byte { return body }, func(_ int, b []byte) { compressed = b })
	}
	return compressed, err
}

// SaveTask stores a task's state and body anew. Only the server that has it may,
// and only while it runs: else the error is vedette.Conflict. To repeat the save
// that ended it is no error. It is vedette.NotFound where there is no such task.
func (s *Store) SaveTask(ctx context.Context, t TaskRow) error {
	action := fmt.Sprintf("save task %.60s", t.ID)
	body, err := s.compressTaskBody(ctx, t.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	t.setEnded()
	n, err := s.execWrite(ctx, saveTaskStatement,
		string(t.State), body, toMicros(t.LastSeen), toMicros(t.Ended), sanitize(t.ID, maxShort), sanitize(string(t.Server), maxShort))
	if err == nil && n == 0 {
		err = s.saveConflict(ctx, &t)
	}
	return s.wrapError(action, err)
}

// saveConflict says why a task could not be saved.
func (s *Store) saveConflict(ctx context.Context, t *TaskRow) error {
	existing, err := s.Task(ctx, t.ID)
	switch {
	case err != nil:
		return err
	case existing.Server != t.Server:
		return vedette.Errorf(vedette.Conflict, "server %s has taken task %s over from %s", existing.Server, t.ID, t.Server)
	case existing.State == t.State && existing.Ended.UnixMicro() == t.Ended.UnixMicro():
		return nil
	}
	return vedette.Errorf(vedette.Conflict, "task %s has ended already, as %s", t.ID, existing.State)
}

// Task returns one task. The error is vedette.NotFound where there is none with
// that ID, or not any more.
func (s *Store) Task(ctx context.Context, id string) (TaskRow, error) {
	t, err := s.queryTask(ctx, ` WHERE id = ?`, sanitize(id, maxShort))
	if errors.Is(err, sql.ErrNoRows) {
		return t, vedette.Errorf(vedette.NotFound, "there is no task %.60s: it was never accepted, or has been forgotten since", id)
	}
	return t, s.wrapError(fmt.Sprintf("read task %.60s", id), err)
}

// MaxTaskBytes is how much of the bodies of running tasks is read at once.
const MaxTaskBytes = 32 << 20

// RunningTasks returns at most so many of the tasks that run on any server, the
// oldest first, and fewer where their bodies have more than MaxTaskBytes.
func (s *Store) RunningTasks(ctx context.Context, limit int) ([]TaskRow, error) {
	tasks, err := s.queryTasks(ctx, MaxTaskBytes, fmt.Sprintf(` WHERE state = 'running' ORDER BY id LIMIT %d`, max(0, limit)))
	return tasks, s.wrapError("read the running tasks", err)
}

// TouchTasks notes that a server was there at a time, and with it all tasks that it
// runs.
func (s *Store) TouchTasks(ctx context.Context, server vedette.ServerID, at time.Time) error {
	_, err := s.execWrite(ctx, `UPDATE tasks SET seen = ? WHERE state = 'running' AND server = ?`, toMicros(at), sanitize(string(server), maxShort))
	return s.wrapError("note that the tasks of server "+string(server)+" run", err)
}

// AbandonedTasks returns the tasks that count as running and that nobody may be
// running any more: those of any server that were not seen since a time, and all
// of one server, which leaves out those that it does run. One that has just
// started runs none.
func (s *Store) AbandonedTasks(ctx context.Context, server vedette.ServerID, seenBefore time.Time) ([]TaskRow, error) {
	tasks, err := s.queryTasks(ctx, 0, ` WHERE state = 'running' AND (server = ? OR seen < ?) ORDER BY id`, sanitize(string(server), maxShort), toMicros(seenBefore))
	return tasks, s.wrapError("read the abandoned tasks", err)
}

// AcquireTask makes a task one server's that was another's, and returns it, running.
// It is taken from a server that runs it no more, to be ended, or it is retryable,
// to be run once more; then it may be the same server. Of several that want it
// one gets it: for the others the error is vedette.Conflict.
func (s *Store) AcquireTask(ctx context.Context, id string, from, to vedette.ServerID) (TaskRow, error) {
	action := fmt.Sprintf("take task %.60s from server %s", id, from)
	owner, newOwner := sanitize(string(from), maxShort), sanitize(string(to), maxShort)
	n, err := s.execWrite(ctx, acquireTaskStatement,
		newOwner, toMicros(time.Now()), sanitize(id, maxShort), owner, newOwner)
	if err != nil {
		return TaskRow{}, s.wrapError(action, err)
	}
	t, err := s.Task(ctx, id)
	if err == nil && n == 0 {
		err = vedette.Errorf(vedette.Conflict, "task %s is %s on server %s by now", id, t.State, t.Server)
	}
	return t, s.wrapError(action, err)
}

// PurgeTasks forgets at most so many of the tasks that ended before a time, the
// oldest first, and returns how many went.
func (s *Store) PurgeTasks(ctx context.Context, endedBefore time.Time, limit int) (int, error) {
	n, err := s.purge(ctx, "tasks", `ended > 0 AND ended < ?`, "ended", limit, toMicros(endedBefore))
	return n, s.wrapError("purge tasks", err)
}

func (s *Store) queryTask(ctx context.Context, where string, args ...any) (TaskRow, error) {
	var t TaskRow
	err := s.queryOne(ctx, func(row scanner) (err error) { t, err = scanTask(row); return err }, selectTasks+where, args...)
	if err == nil {
		err = s.decompressTaskBody(ctx, &t)
	}
	return t, err
}

// queryTasks returns as many tasks as have so many bytes of bodies, all where most
// is 0.
func (s *Store) queryTasks(ctx context.Context, maxBytes int64, where string, args ...any) ([]TaskRow, error) {
	tasks, compressed, decompressed := []TaskRow{}, newByteBudget(maxBytes), newByteBudget(maxBytes)
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		t, err := scanTask(rows)
		if err == nil && !compressed.take(len(t.Body)) {
			err = errBudgetExhausted
		}
		if err == nil {
			tasks = append(tasks, t)
		}
		return err
	}, selectTasks+where, args...)
	if errors.Is(err, errBudgetExhausted) {
		err = nil
	}
	for i := range tasks {
		err = errors.Join(err, s.decompressTaskBody(ctx, &tasks[i]))
		if !decompressed.take(len(tasks[i].Body)) {
			return tasks[:i:i], err
		}
	}
	return tasks, err
}

func (s *Store) decompressTaskBody(ctx context.Context, t *TaskRow) (err error) {
	if t.Body, err = s.dicts.decompress(ctx, s, nil, t.Body); err != nil {
		return fmt.Errorf("read the body of task %s: %w", t.ID, err)
	}
	return nil
}

func scanTask(row scanner) (TaskRow, error) {
	var t TaskRow
	var server, state string
	var created, seen, ended int64
	err := row.Scan(&t.ID, &t.RequestID, &server, &t.Application, &t.User, &state, &created, &seen, &ended, &t.Body)
	t.Server, t.State = vedette.ServerID(server), TaskState(state)
	t.Created, t.LastSeen, t.Ended = fromMicros(created), fromMicros(seen), fromMicros(ended)
	return t, err
}
