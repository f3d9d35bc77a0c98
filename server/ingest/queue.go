package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/vedette-io/vedette"
)

const (
	// maxTaskWait is how long an account's task may delay the other accounts of its agent.
	maxTaskWait = time.Second
	// maxStall is how long an account may be stalled while other accounts need capacity. They need
	// it if at least minBlockedBytes are not acknowledged, including the account's own: an agent
	// sends 512 KiB of snapshots ahead, or more if that goes well, and a few MiB in total. Once an
	// agent has used that up, it cannot send anything that would show that others wait. The limit
	// is low because an agent counts small records as larger than the server does.
	maxStall        = 10 * time.Second
	minBlockedBytes = 256 << 10
)

// queue holds an account's unfinished tasks in order. One goroutine executes them and ends when the
// queue is empty.
type queue struct {
	account vedette.AccountName
	idle    chan struct{} // closed when the queue is empty and removed

	// The fields below are guarded by Pipeline.mu.
	tasks       []*task
	stalled     bool      // whether the pipeline continues without waiting
	taskStarted time.Time // start of the current task
	abort       context.CancelCauseFunc
	logged      bool
}

// errBlocking ends the retries of an account that has blocked others for too long.
var errBlocking = errors.New("the account blocked other accounts of its agent, so it restarts from what is stored")

// enqueue adds a task to its account's queue, and reports whether that queue has stalled. If it has
// not, the queue is new and the caller must run it.
func (p *Pipeline) enqueue(t *task) (q *queue, stalled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	account := t.account()
	q = p.queues[account]
	stalled = q != nil
	if !stalled {
		q = &queue{account: account, idle: make(chan struct{})}
		p.queues[account] = q
	}
	q.tasks = append(q.tasks, t)
	return q, stalled
}

// runQueue executes a queue's tasks until it is empty. It fails if ctx ends or the agent cannot be
// answered.
func (p *Pipeline) runQueue(ctx context.Context, q *queue) error {
	for {
		t, merged := p.nextTask(q)
		if t == nil {
			return nil
		}
		if err := p.runTask(ctx, q, t); err != nil {
			return err
		}
		for _, t := range append(merged, t) {
			if err := p.finishTask(t); err != nil {
				return err
			}
		}
	}
}

// nextTask returns a queue's next task, and the tasks that were merged into it. If there is none,
// it removes the queue.
func (p *Pipeline) nextTask(q *queue) (next *task, merged []*task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q.taskStarted = time.Now()
	if len(q.tasks) > 0 {
		t := q.tasks[0]
		q.tasks = q.tasks[1:]
		return t, q.mergeNext(t)
	}
	delete(p.queues, q.account)
	close(q.idle)
	if q.stalled {
		p.responder.Resumed(q.account)
	}
	return nil, nil
}

// runTask executes a task, unless its account is revoked.
func (p *Pipeline) runTask(ctx context.Context, q *queue, t *task) error {
	if p.isRevoked(q.account, t.term()) {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.mu.Lock()
	q.abort = cancel
	p.mu.Unlock()
	err := p.executeTask(ctx, q, t)
	if errors.Is(err, errRevoked) {
		return nil
	}
	return err
}

// isRevoked reports whether an account is revoked in a term. A later term ends the revocation.
func (p *Pipeline) isRevoked(account vedette.AccountName, term vedette.Term) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	revokedTerm, ok := p.revoked[account]
	if ok && term > revokedTerm {
		delete(p.revoked, account)
	}
	return ok && term <= revokedTerm
}

// stall lets the pipeline continue without waiting for a queue, unless the queue has become empty.
func (p *Pipeline) stall(q *queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues[q.account] != q {
		return
	}
	q.stalled = true
	p.responder.Stalled(q.account,
		vedette.Errorf(vedette.Unavailable, "the account's changes wait for the database, which takes long to store them"))
	if !p.reviewing {
		p.reviewing = true
		time.AfterFunc(maxStall, p.reviewStalled)
	}
}

// reviewStalled revokes accounts that block others.
func (p *Pipeline) reviewStalled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	total, stalled := 0, false
	for _, w := range p.inProgress {
		total += w.bytes
	}
	for _, q := range p.queues {
		stalled = stalled || q.stalled
		// If nothing at all is stored, the cause is not this account.
		if q.stalled && q.abort != nil && time.Since(q.taskStarted) >= maxStall && total >= minBlockedBytes && p.lastStored.After(q.taskStarted) {
			q.abort(errBlocking)
		}
	}
	p.reviewing = stalled && !p.closed
	if p.reviewing {
		time.AfterFunc(time.Second, p.reviewStalled)
	}
}

// waitingError returns the reason why changes wait, as it may be shown to users.
func waitingError(err error) error {
	if vedette.KindOf(err) == "" {
		return vedette.Errorf(vedette.Unavailable,
			"the account's changes wait and are retried: unknown error of the database, see the server's log")
	}
	return vedette.Errorf(vedette.Unavailable, "the account's changes wait and are retried: %w", err)
}

// reportWaiting reports why a queue's task is not finished.
func (p *Pipeline) reportWaiting(q *queue, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.stalled {
		p.responder.Stalled(q.account, waitingError(err))
	}
	if q.logged {
		return
	}
	q.logged = true
	if time.Since(p.lastWarning) < maxStall { // limited, because all accounts may wait at once
		p.log.Debug("changes wait for the database", "account", q.account, "error", err)
		return
	}
	p.lastWarning = time.Now()
	p.log.Warn("retrying: changes wait for the database", "account", q.account, "error", err)
}
