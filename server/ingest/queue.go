package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/vedette-io/vedette"
)

const (
	// mostWaiting is how long an account's task may keep the other accounts of its
	// agent waiting.
	mostWaiting = time.Second
	// mostStalled is how long an account may be stalled while others may want room, and
	// wantsRoom how many bytes that are not acknowledged, its own included, say that
	// they may: an agent has 512 KiB of snapshots under way, or more where that goes
	// well, and some MiB of all. Once that is used up nothing tells that others wait.
	// An agent counts a small record as more than the server does.
	mostStalled = 10 * time.Second
	wantsRoom   = 256 << 10
)

// queue holds an account's tasks that are not done, in their order. One goroutine
// works it off, and is gone with the queue when that is empty.
type queue struct {
	account vedette.AccountName
	idle    chan struct{} // closed when the queue is empty and gone

	// Guarded by Lane.mu.
	tasks   []*task
	stalled bool      // the lane goes on meanwhile
	since   time.Time // when the task that is being done was begun
	giveUp  context.CancelCauseFunc
	logged  bool
}

// errHeldUp ends the tries of an account that others have waited for long enough.
var errHeldUp = errors.New("it held up other accounts of its agent, and is begun again from what is stored")

// enqueue puts a task into its account's queue, and reports whether that has stalled;
// else it is a new one, which is to be worked off.
func (l *Lane) enqueue(t *task) (q *queue, stalled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	account := t.account()
	q = l.queues[account]
	if stalled = q != nil; !stalled {
		q = &queue{account: account, idle: make(chan struct{})}
		l.queues[account] = q
	}
	q.tasks = append(q.tasks, t)
	return q, stalled
}

// workOff does a queue's tasks until there are none. Its error is ctx's, or that the
// agent can't be answered.
func (l *Lane) workOff(ctx context.Context, q *queue) error {
	for {
		t, merged := l.nextOf(q)
		if t == nil {
			return nil
		}
		if err := l.do(ctx, q, t); err != nil {
			return err
		}
		for _, t := range append(merged, t) {
			if err := l.finish(t); err != nil {
				return err
			}
		}
	}
}

// nextOf takes a queue's next task, and those that were merged into it. Where there is
// none the queue is gone.
func (l *Lane) nextOf(q *queue) (next *task, merged []*task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q.since = time.Now()
	if len(q.tasks) > 0 {
		t := q.tasks[0]
		q.tasks = q.tasks[1:]
		return t, q.mergeNext(t)
	}
	delete(l.queues, q.account)
	close(q.idle)
	if q.stalled {
		l.replies.Resumed(q.account)
	}
	return nil, nil
}

// do does a task, unless its account is void.
func (l *Lane) do(ctx context.Context, q *queue, t *task) error {
	if l.isVoid(q.account, t.term()) {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.mu.Lock()
	q.giveUp = cancel
	l.mu.Unlock()
	err := l.perform(ctx, q, t)
	if errors.Is(err, errVoid) {
		return nil
	}
	return err
}

// isVoid reports whether nothing more is taken of an account in a term. A later term
// ends that.
func (l *Lane) isVoid(account vedette.AccountName, term vedette.Term) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	void, is := l.void[account]
	if is && term > void {
		delete(l.void, account)
	}
	return is && term <= void
}

// stall lets the lane go on without a queue, if that is not empty by now.
func (l *Lane) stall(q *queue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queues[q.account] != q {
		return
	}
	q.stalled = true
	l.replies.Stalled(q.account, vedette.Errorf(vedette.Unavailable, "its changes wait for the database, which takes long over them"))
	if !l.reviewed {
		l.reviewed = true
		time.AfterFunc(mostStalled, l.review)
	}
}

// review gives accounts up that hold up others.
func (l *Lane) review() {
	l.mu.Lock()
	defer l.mu.Unlock()
	total, stalled := 0, false
	for _, w := range l.underWay {
		total += w.bytes
	}
	for _, q := range l.queues {
		stalled = stalled || q.stalled
		// Where nothing at all is done, it is not this account that is in the way.
		if q.stalled && q.giveUp != nil && time.Since(q.since) >= mostStalled && total >= wantsRoom && l.progress.After(q.since) {
			q.giveUp(errHeldUp)
		}
	}
	if l.reviewed = stalled && !l.ended; l.reviewed {
		time.AfterFunc(time.Second, l.review)
	}
}

// waitsFor says why changes wait, in words that may be shown.
func waitsFor(err error) error {
	if vedette.KindOf(err) == "" {
		return vedette.Errorf(vedette.Unavailable, "its changes wait, and are tried again: the database fails with an error that this server does not know, which is in the server's log")
	}
	return vedette.Errorf(vedette.Unavailable, "its changes wait, and are tried again: %w", err)
}

// waits notes why a queue's task is not done yet.
func (l *Lane) waits(q *queue, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.stalled {
		l.replies.Stalled(q.account, waitsFor(err))
	}
	if q.logged {
		return
	}
	q.logged = true
	if time.Since(l.warned) < mostStalled { // all accounts may wait at once
		l.log.Debug("changes wait for the database", "account", q.account, "error", err)
		return
	}
	l.warned = time.Now()
	l.log.Warn("changes wait for the database; tried again", "account", q.account, "error", err)
}
