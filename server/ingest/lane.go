package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

const (
	maxRows  = 500     // of a batch: the dialects' statements gain little beyond
	maxBytes = 1 << 20 // of a batch: what a live change may have to wait behind
)

// replies is what a lane tells its agent.
type replies interface {
	// Ack says that the first n numbered records are stored.
	Ack(n uint64) error
	// Index answers a Begin, in one or more calls. The digests are the callee's from
	// then on: they may wait to be sent for as long as the link is slow.
	Index(account vedette.AccountName, feed vedette.Feed, digests []uint64, last bool) error
	// Void says that nothing more is taken of the account in this term: it was
	// given to another cacher, is gone, or what was said of it can't be stored.
	Void(account vedette.AccountName, term vedette.Term, reason error)
	// Fresh says that what the agent knew at that time is stored.
	Fresh(at time.Time)
}

// Lane is one agent's way into the store. While a batch is being committed the
// next one fills; as soon as the commit is done it follows, so that a batch is
// as large as the database is slow, and nothing lingers.
type Lane struct {
	in      *Ingest
	replies replies
	log     *slog.Logger

	mu    sync.Mutex
	next  *work
	room  chan struct{} // closed and replaced when next was taken
	ready chan struct{} // holds one token while next has work
	acked uint64
	ended bool
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
	l.next.add(s)
	l.next.weight += l.in.weigh(s.Size)
	select {
	case l.ready <- struct{}{}:
	default:
	}
	return nil, nil
}

// Run commits what is put until ctx ends or the agent can't be answered.
func (l *Lane) Run(ctx context.Context) error {
	defer l.drain()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.ready:
		}
		w := l.take()
		err := l.do(ctx, w)
		l.in.budget.Release(w.weight)
		if err != nil {
			return err
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
	return w
}

// drain gives back what the lane holds of the budget, and lets no more in.
func (l *Lane) drain() {
	w := l.take()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.in.budget.Release(w.weight + l.next.weight)
}

func (l *Lane) do(ctx context.Context, w *work) error {
	for _, t := range w.ordered() {
		if err := l.task(ctx, t); err != nil {
			return err
		}
	}
	if w.records == 0 {
		return nil
	}
	l.acked += w.records
	return l.replies.Ack(l.acked)
}

func (l *Lane) task(ctx context.Context, t task) error {
	switch {
	case t.batch != nil:
		return l.commit(ctx, t.batch.build())
	case t.step.Type == Pulse:
		l.replies.Fresh(t.step.Time)
		return nil
	case t.step.Type == Declare:
		return l.declare(ctx, t.step)
	default:
		return l.begin(ctx, t.step)
	}
}

func (l *Lane) declare(ctx context.Context, s Step) error {
	return l.try(ctx, s.Account, s.Term, "declare feeds", func() error {
		changes, err := l.in.store.Declare(ctx, s.Account, s.Term, s.Feeds, s.UnknownGroups)
		l.in.hub.Publish(changes)
		return err
	})
}

func (l *Lane) begin(ctx context.Context, s Step) error {
	err := l.try(ctx, s.Account, s.Term, "begin snapshot", func() error {
		return l.in.store.Begin(ctx, s.Account, s.Term, s.Feed)
	})
	if err != nil {
		return err
	}
	return l.try(ctx, s.Account, s.Term, "read index", func() error { return l.index(ctx, s) })
}

// index sends what the store holds of a feed. Where reading breaks off it is
// read again from the start: the agent may hear of a digest twice.
func (l *Lane) index(ctx context.Context, s Step) error {
	err := l.in.store.Index(ctx, s.Account, s.Feed, func(digests []uint64) error {
		return l.replies.Index(s.Account, s.Feed, digests, false)
	})
	if err != nil {
		return err
	}
	return l.replies.Index(s.Account, s.Feed, nil, true)
}

func (l *Lane) commit(ctx context.Context, b store.Batch) error {
	return l.try(ctx, b.Account, b.Term, "commit batch", func() error {
		changes, err := l.in.store.Commit(ctx, b)
		l.in.hub.Publish(changes) // of what was stored before an error too
		if !isRefusal(err) || ctx.Err() != nil {
			return err
		}
		return l.commitApart(ctx, b, err)
	})
}

// commitApart stores a batch with something in it that can't be stored: halves
// are tried until the one object is left alone. That one is given up, with a
// line and a counter, so that it can't hold up its whole cluster. What a snapshot
// drops goes with the first half: what is written after it must stay.
func (l *Lane) commitApart(ctx context.Context, b store.Batch, cause error) error {
	if len(b.Upserts) == 1 && len(b.Deletes) == 0 {
		l.in.refused.Add(1)
		l.log.Error("object left out: it can't be stored", "account", b.Account, "object", b.Upserts[0].Key.String(), "error", cause)
		b.Upserts = nil
		changes, err := l.in.store.Commit(ctx, b)
		l.in.hub.Publish(changes) // of what a snapshot dropped
		return err
	}
	if len(b.Upserts) == 0 {
		return fmt.Errorf("commit batch of %s: %w", b.Account, cause)
	}
	half := max(1, len(b.Upserts)/2)
	first := store.Batch{Account: b.Account, Term: b.Term, Upserts: b.Upserts[:half], Drops: b.Drops}
	b.Upserts, b.Drops = b.Upserts[half:], nil
	for _, part := range []store.Batch{first, b} {
		changes, err := l.in.store.Commit(ctx, part)
		l.in.hub.Publish(changes)
		if isRefusal(err) && ctx.Err() == nil {
			err = l.commitApart(ctx, part, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isRefusal reports whether an error is about what a batch holds, and not about
// whose it is or about the database.
func isRefusal(err error) bool {
	for _, other := range []error{store.ErrTerm, store.ErrNoAccount, store.ErrNoFeed} {
		if errors.Is(err, other) {
			return false
		}
	}
	return err != nil && vedette.KindOf(err) != vedette.Unavailable
}

// try repeats a deed while the database is away: meanwhile the lane is full, the
// agent waits, and in the end its API server does. A deed that is refused for
// any other reason makes its account void, of which the agent hears, and no
// other account: the lane goes on.
func (l *Lane) try(ctx context.Context, account vedette.AccountName, term vedette.Term, deed string, do func() error) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 100*time.Millisecond, 5*time.Second
	for logged := false; ; {
		err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case vedette.KindOf(err) != vedette.Unavailable:
			l.replies.Void(account, term, fmt.Errorf("%s of %s: %w", deed, account, err))
			return nil
		}
		if !logged {
			logged = true
			l.log.Warn("database does not answer; changes wait", "account", account, "error", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait.NextBackOff()):
		}
	}
}
