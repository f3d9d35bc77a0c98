package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/vedette-io/vedette"
)

const (
	// maxTaskWait is how long an account's task may keep the other accounts of its
	// agent waiting.
	maxTaskWait = time.Second
	// maxStall is how long an account may be stalled while others may want room, and
	// minBlockedBytes how many bytes that are not acknowledged, its own included, say that
	// they may: an agent has 512 KiB of snapshots under way, or more where that goes
	// well, and some MiB of all. Once that is used up nothing tells that others wait.
	// An agent counts a small record as more than the server does.
	maxStall        = 10 * time.Second
	minBlockedBytes = 256 << 10
)

// queue holds an account's tasks that are not done, in their order. One goroutine
// works it off, and is gone with the queue when that is empty.
type queue struct {
	account vedette.AccountName
	idle    chan struct{} // closed when the queue is empty and gone

	// Guarded by Lane.mu.
	tasks       []*task
	stalled     bool      // the lane goes on meanwhile
	taskStarted time.Time // when the task that is being done was begun
	abort       context.CancelCauseFunc
	logged      bool
}

// errBlocking ends the tries of an account that others have waited for long enough.
var errBlocking = errors.New("it held up other accounts of its agent, and is begun again from what is stored")

// enqueue puts a task into its account's queue, and reports whether that has stalled;
// else it is a new one, which is to be worked off.
func (p *Pipeline) enqueue(t *task) (q *queue, stalled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	account := t.account()
	q = p.queues[account]
	if stalled = q != nil; !stalled {
		q = &queue{account: account, idle: make(chan struct{})}
		p.queues[account] = q
	}
	q.tasks = append(q.tasks, t)
	return q, stalled
}

// runQueue does a queue's tasks until there are none. Its error is ctx's, or that the
// agent can't be answered.
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

// nextTask takes a queue's next task, and those that were merged into it. Where there is
// none the queue is gone.
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

// runTask does a task, unless its account is void.
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

// isRevoked reports whether nothing more is taken of an account in a term. A later term
// ends that.
func (p *Pipeline) isRevoked(account vedette.AccountName, term vedette.Term) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	revokedTerm, ok := p.revoked[account]
	if ok && term > revokedTerm {
		delete(p.revoked, account)
	}
	return ok && term <= revokedTerm
}

// stall lets the lane go on without a queue, if that is not empty by now.
func (p *Pipeline) stall(q *queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues[q.account] != q {
		return
	}
	q.stalled = true
	p.responder.Stalled(q.account, vedette.Errorf(vedette.Unavailable, "its changes wait for the database, which takes long over them"))
	if !p.reviewing {
		p.reviewing = true
		time.AfterFunc(maxStall, p.reviewStalled)
	}
}

// reviewStalled gives accounts up that hold up others.
func (p *Pipeline) reviewStalled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	total, stalled := 0, false
	for _, w := range p.inProgress {
		total += w.bytes
	}
	for _, q := range p.queues {
		stalled = stalled || q.stalled
		// Where nothing at all is done, it is not this account that is in the way.
		if q.stalled && q.abort != nil && time.Since(q.taskStarted) >= maxStall && total >= minBlockedBytes && p.lastStored.After(q.taskStarted) {
			q.abort(errBlocking)
		}
	}
	if p.reviewing = stalled && !p.closed; p.reviewing {
		time.AfterFunc(time.Second, p.reviewStalled)
	}
}

// waitingError says why changes wait, in words that may be shown.
func waitingError(err error) error {
	if vedette.KindOf(err) == "" {
		return vedette.Errorf(vedette.Unavailable, "its changes wait, and are tried again: the database fails with an error that this server does not know, which is in the server's log")
	}
	return vedette.Errorf(vedette.Unavailable, "its changes wait, and are tried again: %w", err)
}

// reportWaiting notes why a queue's task is not done yet.
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
	if time.Since(p.lastWarning) < maxStall { // all accounts may wait at once
		p.log.Debug("changes wait for the database", "account", q.account, "error", err)
		return
	}
	p.lastWarning = time.Now()
	p.log.Warn("changes wait for the database; tried again", "account", q.account, "error", err)
}
