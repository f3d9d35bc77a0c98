package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// errVoid ends a task whose account is void.
var errVoid = errors.New("nothing more is taken of the account")

// perform brings a task to its end, however often it must be tried.
func (l *Lane) perform(ctx context.Context, q *queue, t *task) error {
	switch {
	case t.batch != nil:
		return l.commit(ctx, q, t.batch)
	case t.step.Type == Declare:
		return l.declare(ctx, q, t.step)
	default:
		return l.begin(ctx, q, t.step)
	}
}

func (l *Lane) declare(ctx context.Context, q *queue, s Step) error {
	return l.try(ctx, q, s.Term, "declare feeds", func() error {
		changes, err := l.in.store.Declare(ctx, s.Account, s.Term, s.Feeds, s.UnknownGroups)
		l.in.hub.Publish(changes)
		return err
	})
}

func (l *Lane) begin(ctx context.Context, q *queue, s Step) error {
	err := l.try(ctx, q, s.Term, "begin snapshot", func() error {
		return l.in.store.BeginSnapshot(ctx, s.Account, s.Term, s.Feed)
	})
	if err != nil {
		return err
	}
	l.left.forget(s.Account, s.Feed) // the snapshot tells them again
	return l.try(ctx, q, s.Term, "read index", func() error { return l.index(ctx, s) })
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

// isRefusal reports whether an error says that what was asked for will never be
// done: the account is another's or gone, what the agent says makes no sense, or what
// it goes on from does not count any more. All else may pass.
func isRefusal(err error) bool {
	for _, refusal := range []error{store.ErrTerm, store.ErrNoAccount, store.ErrNoFeed, store.ErrRewound} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return vedette.KindOf(err) == vedette.Invalid
}

// try repeats a deed until it is done: meanwhile its account's changes wait, then the
// agent does, and in the end its API server. A deed that is refused makes its account
// void, of which the agent hears, and no other account.
func (l *Lane) try(ctx context.Context, q *queue, term vedette.Term, deed string, do func() error) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 100*time.Millisecond, 5*time.Second
	for {
		err := do()
		switch {
		case err == nil:
			l.mu.Lock()
			defer l.mu.Unlock()
			l.progress = time.Now()
			return nil
		case ctx.Err() != nil:
			return l.stopped(ctx, q, term, deed, err)
		case isRefusal(err):
			return l.refuse(q, term, fmt.Errorf("%s of %s: %w", deed, q.account, err))
		}
		l.waits(q, err)
		select {
		case <-ctx.Done():
			return l.stopped(ctx, q, term, deed, err)
		case <-time.After(wait.NextBackOff()):
		}
	}
}

// stopped tells why a deed is tried no more.
func (l *Lane) stopped(ctx context.Context, q *queue, term vedette.Term, deed string, last error) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, errHeldUp) {
		return cause
	}
	return l.refuse(q, term, vedette.Errorf(vedette.Unavailable, "%s of %s: the database has not done it for more than %v: %w: %v", deed, q.account, mostStalled, errHeldUp, last))
}

// refuse makes an account void: what was put of it in this term and is not stored
// will not be, or its mark would pass what is missing.
func (l *Lane) refuse(q *queue, term vedette.Term, reason error) error {
	l.mu.Lock()
	l.void[q.account] = max(l.void[q.account], term)
	l.mu.Unlock()
	l.replies.Void(q.account, term, reason)
	return errVoid
}
