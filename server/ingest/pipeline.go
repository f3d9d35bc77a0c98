package ingest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
)

const (
	maxBatchRows  = 500     // per batch; more rows make the statements hardly faster
	maxBatchBytes = 1 << 20 // per batch; a live change may have to wait for that much
	// maxUnfinishedBytes limits what a pipeline has taken and not finished. An agent that respects
	// its credit sends less than that.
	maxUnfinishedBytes = 8 << 20
)

// responder sends a pipeline's answers to its agent. Only Revoke may block.
type responder interface {
	// Ack reports that the first n numbered records are stored.
	Ack(n uint64) error
	// Index answers a Begin of a term, in one or more calls. The callee owns digests, because they may
	// wait for a slow connection.
	Index(account vedette.AccountName, term vedette.Term, feed vedette.Feed, digests []uint64, last bool) error
	// VerifyAnswer answers a VerifyFeed. The callee owns the answer.
	VerifyAnswer(account vedette.AccountName, feed vedette.Feed, answer VerifyAnswer) error
	// Revoke reports that no more changes of the account are accepted in this term: another agent
	// is the cacher, the account does not exist, or its changes cannot be stored.
	Revoke(account vedette.AccountName, term vedette.Term, reason error)
	// SetFresh reports that everything that the agent knew at that time is stored, except for
	// stalled accounts, and those with another age.
	SetFresh(at time.Time, ages map[vedette.AccountName]vedette.AccountAge)
	// Stalled reports that an account's changes wait, and why, while other accounts continue. It
	// may be called again with another reason.
	Stalled(account vedette.AccountName, reason error)
	// Resumed reports that all changes of a stalled account are stored.
	Resumed(account vedette.AccountName)
}

// Pipeline is one agent's way into the store. While a batch is committed, the next one fills. It is
// committed as soon as the previous commit ends, so batches grow if the database is slow and
// nothing waits if it is fast.
//
// If a batch of an account takes long, a goroutine of its own continues with the account, and the
// pipeline continues with the others. A lock on one account in the database, for example, does not
// delay the other accounts. Records are still acknowledged in order. Therefore, if a stalled
// account uses up what the agent may have in flight, it is revoked: its agent registers it again
// and continues from the stored marks.
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
	inProgress      []*taskSet                           // taken and not finished, oldest first
	unfinishedBytes int                                  // bytes of unfinished tasks in inProgress
	held            fair.Grant                           // what pending and inProgress hold of the budget
	workFinished    chan struct{}                        // closed and replaced when unfinishedBytes has decreased
	queues          map[vedette.AccountName]*queue       // by account, only accounts with tasks
	revoked         map[vedette.AccountName]vedette.Term // terms of which no more changes are accepted
	lastStored      time.Time                            // time of the last successful store
	reviewing       bool                                 // whether a goroutine reviews stalled accounts
	lastWarning     time.Time                            // time of the last warning that changes wait
	acked           uint64
}

var errClosed = errors.New("the agent's pipeline has ended")

// Put adds a step. It waits while the next batch is full or the server's ingest budget is used up.
func (p *Pipeline) Put(ctx context.Context, s Step) error {
	grant, err := p.ingest.budget.Acquire(ctx, p.source, p.ingest.weight(s.Size))
	if err != nil {
		return err
	}
	for {
		freed, err := p.put(s, grant)
		if freed == nil {
			return err
		}
		select {
		case <-ctx.Done():
			grant.Release()
			return context.Cause(ctx)
		case <-freed:
		}
	}
}

// put adds a step, or returns a channel to wait for if the step does not fit now.
func (p *Pipeline) put(s Step, grant *fair.Grant) (wait <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		grant.Release()
		return nil, errClosed
	}
	if p.pending.rows >= maxBatchRows || p.pending.bytes >= maxBatchBytes {
		return p.spaceFreed, nil
	}
	p.pending.add(s, grant.Units())
	p.held.Join(grant)
	select {
	case p.ready <- struct{}{}:
	default:
	}
	return nil, nil
}

// Run commits what Put adds, until ctx ends or the agent cannot be answered.
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

// awaitCapacity waits while stalled accounts hold too many bytes.
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
	w.remaining = len(w.tasks)
	if w.remaining > 0 {
		p.inProgress = append(p.inProgress, w)
		p.unfinishedBytes += w.bytes
	}
	return w
}

// shutDown returns the pipeline's bytes to the budget and rejects further steps.
func (p *Pipeline) shutDown() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.held.Release()
}

// startTask executes a task, or queues it behind earlier tasks of the same account. It waits for it
// at most maxTaskWait.
func (p *Pipeline) startTask(ctx context.Context, group *errgroup.Group, t *task) error {
	if t.isHeartbeat() {
		p.responder.SetFresh(t.step.Time, t.step.Ages)
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

// finishTask marks a task as finished, and acknowledges all records before the first unfinished
// one.
func (p *Pipeline) finishTask(t *task) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.set.remaining--
	p.unfinishedBytes -= t.bytes
	p.held.Shrink(t.weight)
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
