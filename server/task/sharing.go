package task

import (
	"context"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/tasks"
)

// Sharing is what tasks need if several servers share the database.
type Sharing struct {
	// Process is the process of this server, by which others know whether it still runs.
	Process string
	// Candidates returns the other servers that accept tasks. It must not block.
	Candidates func() []vedette.ServerID
	// Changed returns a channel that is closed when the candidates change.
	Changed func() <-chan struct{}
	// IsAlive reports whether a process of a server may still write to the database. It returns false only if that is certain.
	IsAlive func(ctx context.Context, server vedette.ServerID, process string) bool
	Peers   Peers
	// Resume is Config.Dispatch.Execute for an operation that another server, which runs no more or does not wait for it any more, may
	// have begun with the same id. It takes effect once.
	Resume func(ctx context.Context, op vedette.Operation) vedette.Outcome
	// KnownUID returns the uid of the object that a deletion names; empty if it is unknown.
	KnownUID func(ctx context.Context, account vedette.AccountName, args vedette.DeleteArgs) string
	// Remote returns a Remote of which another server has sent what its Caller method returns; nil if there is no upstream Clouddriver.
	Remote func(caller []byte) (Remote, error)
}

// Peers calls other servers.
type Peers interface {
	// CopyTask opens a stream for the copy of one task, which ends with ctx.
	CopyTask(ctx context.Context, to vedette.ServerID) (CopyStream, error)
	// Task returns the body of a task that runs at another server, as RunningBody does there. The error is vedette.NotFound if it does
	// not run there, and vedette.Unavailable if the server does not answer.
	Task(ctx context.Context, at vedette.ServerID, id string) ([]byte, error)
	// CancelTask is Cancel at a server that runs the task. Its errors are those of Task.
	CancelTask(ctx context.Context, at vedette.ServerID, id string, retryable bool) error
}

// CopyStream carries the frames of one copy.
type CopyStream interface {
	// Send sends a frame. It may block until the other server reads.
	Send(frame []byte) error
	// Receive waits until the other server has taken in more frames, and returns how many it has. The error is io.EOF if it has ended the
	// stream in order.
	Receive() (taken uint64, err error)
}

// processLength is how many letters of a process the owner of a task has.
const processLength = 10

// ownerOf returns the owner of the tasks of a process.
func ownerOf(process string, server vedette.ServerID) vedette.ServerID {
	return vedette.ServerID(process[:min(len(process), processLength)] + "@" + string(server))
}

// IsProcess reports whether a process is one that an owner names.
func IsProcess(named, process string) bool {
	return process != "" && named == process[:min(len(process), processLength)]
}

// ownerServer returns the process, as IsProcess reads it, and the server of an owner.
func ownerServer(owner vedette.ServerID) (process string, server vedette.ServerID) {
	process, _, _ = strings.Cut(string(owner), "@")
	return process, vedette.ServerID(OwnerHost(string(owner)))
}

func (t *Tasks) isAlive(ctx context.Context, owner vedette.ServerID) bool {
	if owner == t.owner {
		return true
	}
	process, server := ownerServer(owner)
	return t.cfg.Sharing.IsAlive(ctx, server, process)
}

// askTimeout is how long another server may take to tell of a task. Then the database answers, which has what the task had done before
// its last change.
const askTimeout = time.Second

// fresh returns a stored task as the server that runs it shows it.
func (t *Tasks) fresh(ctx context.Context, row tasks.Task) (tasks.Task, error) {
	if t.cfg.Sharing == nil || row.State != tasks.Running || row.Server == t.owner {
		return row, nil
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, server := ownerServer(row.Server)
	body, err := t.cfg.Sharing.Peers.Task(asking, server, row.ID)
	switch {
	case err == nil:
		row.Body = body
		return row, nil
	case vedette.KindOf(err) == vedette.NotFound: // it has just ended, or moved
		return t.row(ctx, row.ID)
	}
	return row, nil
}

// RunningBody returns the body of a task that runs here, for another server. The error is vedette.NotFound if it does not.
func (t *Tasks) RunningBody(id string) ([]byte, error) {
	r := t.run(id)
	if r == nil || !r.isStarted() {
		return nil, notFound(id)
	}
	return r.currentTask().encodeBody()
}

// CancelRunning is Cancel for a task that runs here, for another server. The error is vedette.NotFound if it does not.
func (t *Tasks) CancelRunning(ctx context.Context, id string, retryable bool) error {
	r := t.run(id)
	if r == nil {
		return notFound(id)
	}
	return r.end(ctx, retryable)
}

// cancelTimeout is how long the server that runs a task may take to end it. Then the task is taken from it.
const cancelTimeout = 5 * time.Second

// cancelElsewhere cancels a task at the server that runs it, and reports whether it did.
func (t *Tasks) cancelElsewhere(ctx context.Context, row tasks.Task, retryable bool) bool {
	if t.cfg.Sharing == nil || row.State != tasks.Running || row.Server == t.owner {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	_, server := ownerServer(row.Server)
	return t.cfg.Sharing.Peers.CancelTask(ctx, server, row.ID, retryable) == nil
}

func (t *Tasks) run(id string) *taskRun {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running[id]
}
