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
	maxRows  = 500     // of a batch: the dialects' statements gain little beyond
	maxBytes = 1 << 20 // of a batch: what a live change may have to wait behind
	// maxHeld bounds what a lane has taken and not done. An agent that keeps to its
	// credit has less under way.
	maxHeld = 8 << 20
)

// replies is what a lane tells its agent. No method may wait, but Void.
type replies interface {
	// Ack says that the first n numbered records are stored.
	Ack(n uint64) error
	// Index answers a Begin, in one or more calls. The digests are the callee's from
	// then on: they may wait to be sent for as long as the link is slow.
	Index(account vedette.AccountName, feed vedette.Feed, digests []uint64, last bool) error
	// Void says that nothing more is taken of the account in this term: it was
	// given to another cacher, is gone, or what was said of it can't be stored.
	Void(account vedette.AccountName, term vedette.Term, reason error)
	// Fresh says that what the agent knew at that time is stored, but for the accounts
	// that are stalled.
	Fresh(at time.Time)
	// Stalled says that an account's changes wait, and why, while those of others go
	// on. It may be said again with another reason.
	Stalled(account vedette.AccountName, reason error)
	// Resumed says that all that was put of an account that had stalled is stored.
	Resumed(account vedette.AccountName)
}

// Lane is one agent's way into the store. While a batch is being committed the
// next one fills; as soon as the commit is done it follows, so that a batch is
// as large as the database is slow, and nothing lingers.
//
// An account whose batch takes long is left to a goroutine of its own, and the lane
// goes on with the others: what keeps one account from being written, such as a lock
// that somebody holds, is no reason for the others to wait. Records are acknowledged
// in their order all the same. So where such an account holds up what others may
// have under way, it is given up: its agent asks for it again, and goes on from the
// marks that are stored.
type Lane struct {
	in      *Ingest
	source  string
	replies replies
	log     *slog.Logger
	left    leftOuts

	mu       sync.Mutex
	next     *work
	room     chan struct{} // closed and replaced when next was taken
	ready    chan struct{} // holds one token while next has work
	ended    bool
	underWay []*work                              // taken and not done, oldest first
	held     int                                  // bytes of the tasks of underWay that are not done
	weight   int64                                // that they hold of the budget
	eased    chan struct{}                        // closed and replaced when held has shrunk
	queues   map[vedette.AccountName]*queue       // of accounts that have tasks
	void     map[vedette.AccountName]vedette.Term // of which nothing more is taken
	progress time.Time                            // when something was last stored
	reviewed bool                                 // stalled accounts are looked at
	warned   time.Time                            // when it was last logged that changes wait
	acked    uint64
}

var errEnded = errors.New("the agent's lane has ended")

// Put adds a step, and waits while the batch that fills is full or the server's
// ingest budget is used up.
func (l *Lane) Put(ctx context.Context, s Step) error {
	if err := l.in.budget.Acquire(ctx, l.in.weigh(s.Size)); err != nil {
		return context.Cause(ctx)
	}
	for {
		room, err := l.put(s)
		if room == nil {
			return err
		}
		select {
		case <-ctx.Done():
			l.in.budget.Release(l.in.weigh(s.Size))
			return context.Cause(ctx)
		case <-room:
		}
	}
}

// put returns what to wait for where the step does not fit now.
func (l *Lane) put(s Step) (wait <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		l.in.budget.Release(l.in.weigh(s.Size))
		return nil, errEnded
	}
	if l.next.rows >= maxRows || l.next.bytes >= maxBytes {
		return l.room, nil
	}
	l.next.add(s, l.in.weigh(s.Size))
	select {
	case l.ready <- struct{}{}:
	default:
	}
	return nil, nil
}

// Run commits what is put until ctx ends or the agent can't be answered.
func (l *Lane) Run(ctx context.Context) error {
	defer l.drain()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.run(ctx, group) })
	return group.Wait()
}

func (l *Lane) run(ctx context.Context, group *errgroup.Group) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.ready:
		}
		if err := l.awaitRoom(ctx); err != nil {
			return err
		}
		for _, t := range l.take().ordered() {
			if err := l.start(ctx, group, t); err != nil {
				return err
			}
		}
	}
}

// awaitRoom waits while accounts that stalled hold too much.
func (l *Lane) awaitRoom(ctx context.Context) error {
	for {
		l.mu.Lock()
		full, eased := l.held >= maxHeld, l.eased
		l.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-eased:
		}
	}
}

func (l *Lane) take() *work {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.next
	l.next = newWork()
	close(l.room)
	l.room = make(chan struct{})
	if w.undone = len(w.tasks); w.undone > 0 {
		l.underWay = append(l.underWay, w)
		l.held += w.bytes
		l.weight += w.weight
	}
	return w
}

// drain gives back what the lane holds of the budget, and lets no more in.
func (l *Lane) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.in.budget.Release(l.weight + l.next.weight)
	l.weight, l.next.weight = 0, 0
}

// start does a task, or has it done after those before it of the same account. It
// waits for it, but not long.
func (l *Lane) start(ctx context.Context, group *errgroup.Group, t *task) error {
	if t.isPulse() {
		l.replies.Fresh(t.step.Time)
		return l.finish(t)
	}
	if t.isSkip() {
		return l.finish(t)
	}
	q, stalled := l.enqueue(t)
	if stalled {
		return nil
	}
	group.Go(func() error { return l.workOff(ctx, q) })
	patience := time.NewTimer(mostWaiting)
	defer patience.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-q.idle:
	case <-patience.C:
		l.stall(q)
	}
	return nil
}

// finish notes that a task is done, and acknowledges what is stored up to where
// nothing is missing.
func (l *Lane) finish(t *task) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.work.undone--
	l.held -= t.bytes
	l.weight -= t.weight
	l.in.budget.Release(t.weight)
	close(l.eased)
	l.eased = make(chan struct{})
	before := l.acked
	for len(l.underWay) > 0 && l.underWay[0].undone == 0 {
		l.acked += l.underWay[0].records
		l.underWay = l.underWay[1:]
	}
	if l.acked == before {
		return nil
	}
	return l.replies.Ack(l.acked)
}
