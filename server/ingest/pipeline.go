package ingest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
)

const (
	maxBatchRows  = 500     // of a batch: the dialects' statements gain little beyond
	maxBatchBytes = 1 << 20 // of a batch: what a live change may have to wait behind
	// maxUnfinishedBytes bounds what a lane has taken and not done. An agent that keeps to its
	// credit has less under way.
	maxUnfinishedBytes = 8 << 20
)

// responder is what a lane tells its agent. No method may wait, but Void.
type responder interface {
	// Ack says that the first n numbered records are stored.
	Ack(n uint64) error
	// Index answers a Begin, in one or more calls. The digests are the callee's from
	// then on: they may wait to be sent for as long as the link is slow.
	Index(account vedette.AccountName, feed vedette.Feed, digests []uint64, last bool) error
	// Revoke says that nothing more is taken of the account in this term: it was
	// given to another cacher, is gone, or what was said of it can't be stored.
	Revoke(account vedette.AccountName, term vedette.Term, reason error)
	// SetFresh says that what the agent knew at that time is stored, but for the accounts
	// that are stalled.
	SetFresh(at time.Time)
	// Stalled says that an account's changes wait, and why, while those of others go
	// on. It may be said again with another reason.
	Stalled(account vedette.AccountName, reason error)
	// Resumed says that all that was put of an account that had stalled is stored.
	Resumed(account vedette.AccountName)
}

// Pipeline is one agent's way into the store. While a batch is being committed the
// next one fills; as soon as the commit is done it follows, so that a batch is
// as large as the database is slow, and nothing lingers.
//
// An account whose batch takes long is left to a goroutine of its own, and the lane
// goes on with the others: what keeps one account from being written, such as a lock
// that somebody holds, is no reason for the others to wait. Records are acknowledged
// in their order all the same. So where such an account holds up what others may
// have under way, it is given up: its agent asks for it again, and goes on from the
// marks that are stored.
type Pipeline struct {
	ingest    *Ingest
	source    string
	responder responder
	log       *slog.Logger
	omissions omissions

	mu              sync.Mutex
	pending         *taskSet
	spaceFreed      chan struct{} // closed and replaced when next was taken
	ready           chan struct{} // holds one token while next has work
	closed          bool
	inProgress      []*taskSet                           // taken and not done, oldest first
	unfinishedBytes int                                  // bytes of the tasks of inProgress that are not done
	weight          int64                                // that they hold of the budget
	workFinished    chan struct{}                        // closed and replaced when held has shrunk
	queues          map[vedette.AccountName]*queue       // of accounts that have tasks
	revoked         map[vedette.AccountName]vedette.Term // of which nothing more is taken
	lastStored      time.Time                            // when something was last stored
	reviewing       bool                                 // stalled accounts are looked at
	lastWarning     time.Time                            // when it was last logged that changes wait
	acked           uint64
}

var errClosed = errors.New("the agent's lane has ended")

// Put adds a step, and waits while the batch that fills is full or the server's
// ingest budget is used up.
func (p *Pipeline) Put(ctx context.Context, s Step) error {
	if err := p.ingest.budget.Acquire(ctx, p.ingest.weight(s.Size)); err != nil {
		return context.Cause(ctx)
	}
	for {
		freed, err := p.put(s)
		if freed == nil {
			return err
		}
		select {
		case <-ctx.Done():
			p.ingest.budget.Release(p.ingest.weight(s.Size))
			return context.Cause(ctx)
		case <-freed:
		}
	}
}

// put returns what to wait for where the step does not fit now.
func (p *Pipeline) put(s Step) (wait <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.ingest.budget.Release(p.ingest.weight(s.Size))
		return nil, errClosed
	}
	if p.pending.rows >= maxBatchRows || p.pending.bytes >= maxBatchBytes {
		return p.spaceFreed, nil
	}
	p.pending.add(s, p.ingest.weight(s.Size))
	select {
	case p.ready <- struct{}{}:
	default:
	}
	return nil, nil
}

// Run commits what is put until ctx ends or the agent can't be answered.
func (p *Pipeline) Run(ctx context.Context) error {
	defer p.shutDown()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.run(ctx, group) })
	return group.Wait()
}

func (p *Pipeline) run(ctx context.Context, group *errgroup.Group) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.ready:
		}
		if err := p.awaitCapacity(ctx); err != nil {
			return err
		}
		for _, t := range p.take().prioritized() {
			if err := p.startTask(ctx, group, t); err != nil {
				return err
			}
		}
	}
}

// awaitCapacity waits while accounts that stalled hold too much.
func (p *Pipeline) awaitCapacity(ctx context.Context) error {
	for {
		p.mu.Lock()
		full, finished := p.unfinishedBytes >= maxUnfinishedBytes, p.workFinished
		p.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-finished:
		}
	}
}

func (p *Pipeline) take() *taskSet {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.pending
	p.pending = newTaskSet()
	close(p.spaceFreed)
	p.spaceFreed = make(chan struct{})
	if w.remaining = len(w.tasks); w.remaining > 0 {
		p.inProgress = append(p.inProgress, w)
		p.unfinishedBytes += w.bytes
		p.weight += w.weight
	}
	return w
}

// shutDown gives back what the lane holds of the budget, and lets no more in.
func (p *Pipeline) shutDown() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.ingest.budget.Release(p.weight + p.pending.weight)
	p.weight, p.pending.weight = 0, 0
}

// startTask does a task, or has it done after those before it of the same account. It
// waits for it, but not long.
func (p *Pipeline) startTask(ctx context.Context, group *errgroup.Group, t *task) error {
	if t.isHeartbeat() {
		p.responder.SetFresh(t.step.Time)
		return p.finishTask(t)
	}
	if t.isSkip() {
		return p.finishTask(t)
	}
	q, stalled := p.enqueue(t)
	if stalled {
		return nil
	}
	group.Go(func() error { return p.runQueue(ctx, q) })
	timer := time.NewTimer(maxTaskWait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-q.idle:
	case <-timer.C:
		p.stall(q)
	}
	return nil
}

// finishTask notes that a task is done, and acknowledges what is stored up to where
// nothing is missing.
func (p *Pipeline) finishTask(t *task) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.set.remaining--
	p.unfinishedBytes -= t.bytes
	p.weight -= t.weight
	p.ingest.budget.Release(t.weight)
	close(p.workFinished)
	p.workFinished = make(chan struct{})
	before := p.acked
	for len(p.inProgress) > 0 && p.inProgress[0].remaining == 0 {
		p.acked += p.inProgress[0].records
		p.inProgress = p.inProgress[1:]
	}
	if p.acked == before {
		return nil
	}
	return p.responder.Ack(p.acked)
}
