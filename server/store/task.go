package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/vedette-io/vedette"
)

// TaskState is the state of a task. The values are stored.
type TaskState string

// The states of a task:
//
//	running ──> succeeded | failed | retryable ──> running (AcquireTask)
const (
	TaskRunning   TaskState = "running"
	TaskSucceeded TaskState = "succeeded"
	TaskFailed    TaskState = "failed"
	TaskRetryable TaskState = "retryable" // failed, and may continue from where it stopped
)

// TaskRow is one of Clouddriver's tasks: one request, which one server executes as several
// operations.
type TaskRow struct {
	ID          string // a ULID
	RequestID   string // identifies repeated requests; empty if the request has none
	Server      vedette.ServerID
	Application string
	User        string
	State       TaskState
	Body        []byte // opaque JSON: history and results

	// By the clocks of the servers, to the microsecond.
	Created  time.Time
	LastSeen time.Time // when its server last reported that it runs
	Ended    time.Time // zero while it runs
}

const selectTasks = `SELECT id, COALESCE(request, ''), server, application, username, state, created, seen, ended, body FROM tasks`

const insertTaskStatement = `INSERT INTO tasks (id, request, server, application, username, state, created, seen, ended, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const saveTaskStatement = `UPDATE tasks SET state = ?, body = ?, seen = ?, ended = ? WHERE id = ? AND server = ? AND state = 'running'`

const acquireTaskStatement = `UPDATE tasks SET server = ?, state = 'running', seen = ?, ended = 0
	WHERE id = ? AND server = ? AND (state = 'retryable' OR state = 'running' AND server <> ?)`

// CreateTask stores a task, unless one with its RequestID is stored already: then it returns that
// one, and false, even if two servers are asked at the same time. The error is vedette.Conflict if
// another task has its ID.
func (s *Store) CreateTask(ctx context.Context, t TaskRow) (TaskRow, bool, error) {
	action := fmt.Sprintf("store task %.60s", t.ID)
	args, err := s.taskValues(ctx, &t)
	if err != nil {
		return TaskRow{}, false, fmt.Errorf("%s: %w", action, err)
	}
	_, err = s.execWrite(ctx, insertTaskStatement, args...)
	if err == nil {
		return t, true, nil
	}
	if !s.dialect.isUniqueViolation(err) {
		return TaskRow{}, false, s.wrapError(action, err)
	}
	existing, err := s.existingTask(ctx, &t)
	return existing, existing.ID == t.ID, s.wrapError(action, err)
}

// existingTask returns the stored task with the same RequestID. It may be the new one itself, if
// the answer to its first insert was lost.
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
		return nil, vedette.Errorf(vedette.Invalid, "the request id %.60q of task %s is not valid text of at most %d bytes", t.RequestID, t.ID,
			maxShort)
	}
	request := sql.NullString{String: t.RequestID, Valid: t.RequestID != ""}
	body, err := s.compressTaskBody(ctx, t.Body)
	t.setEnded()
	return []any{t.ID, request, sanitize(string(t.Server), maxShort), sanitize(t.Application, maxShort), sanitize(t.User, maxShort),
		string(t.State),
		toMicros(t.Created), toMicros(t.LastSeen), toMicros(t.Ended), body}, err
}

// setEnded makes a task's end agree with its state, because tasks are purged by their end.
func (t *TaskRow) setEnded() {
	switch {
	case t.State == TaskRunning:
		t.Ended = time.Time{}
	case t.Ended.IsZero():
		t.Ended = time.Now()
	}
}

// compressTaskBody compresses without a dictionary, because tasks have little in common, and most
// of a long one repeats itself.
func (s *Store) compressTaskBody(ctx context.Context, body []byte) (compressed []byte, err error) {
	d, err := s.dicts.get(ctx, s, 0)
	if err == nil {
		err = d.Compress(1, func(int) []byte { return body }, func(_ int, b []byte) { compressed = b })
	}
	return compressed, err
}

// SaveTask replaces a task's state and body. The error is vedette.Conflict if the task is another
// server's or does not run any more, but not if the save that ended it is repeated. It is
// vedette.NotFound if there is no such task.
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

// saveConflict returns the reason why a task could not be saved.
func (s *Store) saveConflict(ctx context.Context, t *TaskRow) error {
	existing, err := s.Task(ctx, t.ID)
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
func (s *Store) Task(ctx context.Context, id string) (TaskRow, error) {
	where, args := conditions{equals("id", id, maxID)}.where()
	t, err := s.queryTask(ctx, where, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return t, vedette.Errorf(vedette.NotFound, "there is no task %.60s: it was never accepted, or has been deleted since", id)
	}
	return t, s.wrapError(fmt.Sprintf("read task %.60s", id), err)
}

// MaxTaskBytes limits the bodies of the tasks that RunningTasks reads.
const MaxTaskBytes = 32 << 20

// RunningTasks returns at most limit of the tasks that run on any server, the oldest first, and
// fewer if their bodies exceed MaxTaskBytes.
func (s *Store) RunningTasks(ctx context.Context, limit int) ([]TaskRow, error) {
	tasks, err := s.queryTasks(ctx, MaxTaskBytes, fmt.Sprintf(` WHERE state = 'running' ORDER BY id LIMIT %d`, max(0, limit)))
	return tasks, s.wrapError("read the running tasks", err)
}

// TouchTasks records that a server was running at a time, and so all tasks that run on it.
func (s *Store) TouchTasks(ctx context.Context, server vedette.ServerID, at time.Time) error {
	_, err := s.execWrite(ctx, `UPDATE tasks SET seen = ? WHERE state = 'running' AND server = ?`, toMicros(at),
		sanitize(string(server), maxShort))
	return s.wrapError("update the running tasks of server "+string(server), err)
}

// AbandonedTasks returns the running tasks whose server may have stopped: those of any server that
// were last seen before a time, and all of one server. That server must ignore those that it does
// run; when it starts, it runs none.
func (s *Store) AbandonedTasks(ctx context.Context, server vedette.ServerID, seenBefore time.Time) ([]TaskRow, error) {
	tasks, err := s.queryTasks(ctx, 0, ` WHERE state = 'running' AND (server = ? OR seen < ?) ORDER BY id`, sanitize(string(server), maxShort),
		toMicros(seenBefore))
	return tasks, s.wrapError("read the abandoned tasks", err)
}

// AcquireTask moves a task from one server to another and returns it, running. The task is either
// retryable, and then from and to may be equal, or its server has stopped, and the new one will
// end it. If several servers acquire a task at the same time, one succeeds and the error of the
// others is vedette.Conflict.
func (s *Store) AcquireTask(ctx context.Context, id string, from, to vedette.ServerID) (TaskRow, error) {
	action := fmt.Sprintf("acquire task %.60s from server %s", id, from)
	owner, newOwner := sanitize(string(from), maxShort), sanitize(string(to), maxShort)
	n, err := s.execWrite(ctx, acquireTaskStatement,
		newOwner, toMicros(time.Now()), sanitize(id, maxShort), owner, newOwner)
	if err != nil {
		return TaskRow{}, s.wrapError(action, err)
	}
	t, err := s.Task(ctx, id)
	if err == nil && n == 0 {
		err = vedette.Errorf(vedette.Conflict, "task %s is already %s on server %s", id, t.State, t.Server)
	}
	return t, s.wrapError(action, err)
}

// PurgeTasks deletes at most limit of the tasks that ended before a time, the oldest first, and
// returns their number.
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

// queryTasks returns as many tasks as fit into maxBytes of bodies, or all if maxBytes is 0.
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
	t.Body, err = s.dicts.decompress(ctx, s, nil, t.Body)
	if err != nil {
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
