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

// errRevoked ends a task whose account is void.
var errRevoked = errors.New("nothing more is taken of the account")

// executeTask brings a task to its end, however often it must be tried.
func (p *Pipeline) executeTask(ctx context.Context, q *queue, t *task) error {
	switch {
	case t.batch != nil:
		return p.commit(ctx, q, t.batch)
	case t.step.Type == Declare:
		return p.declare(ctx, q, t.step)
	default:
		return p.begin(ctx, q, t.step)
	}
}

func (p *Pipeline) declare(ctx context.Context, q *queue, s Step) error {
	return p.retry(ctx, q, s.Term, "declare feeds", func() error {
		changes, err := p.ingest.store.Declare(ctx, s.Account, s.Term, s.Feeds, s.UnknownGroups)
		p.ingest.hub.Publish(changes)
		return err
	})
}

func (p *Pipeline) begin(ctx context.Context, q *queue, s Step) error {
	err := p.retry(ctx, q, s.Term, "begin snapshot", func() error {
		return p.ingest.store.BeginSnapshot(ctx, s.Account, s.Term, s.Feed)
	})
	if err != nil {
		return err
	}
	p.omissions.reset(s.Account, s.Feed) // the snapshot tells them again
	return p.retry(ctx, q, s.Term, "read index", func() error { return p.index(ctx, s) })
}

// index sends what the store holds of a feed. Where reading breaks off it is
// read again from the start: the agent may hear of a digest twice.
func (p *Pipeline) index(ctx context.Context, s Step) error {
	err := p.ingest.store.Index(ctx, s.Account, s.Feed, func(digests []uint64) error {
		return p.responder.Index(s.Account, s.Feed, digests, false)
	})
	if err != nil {
		return err
	}
	return p.responder.Index(s.Account, s.Feed, nil, true)
}

// isPermanent reports whether an error says that what was asked for will never be
// done: the account is another's or gone, what the agent says makes no sense, or what
// it goes on from does not count any more. All else may pass.
func isPermanent(err error) bool {
	for _, permanent := range []error{store.ErrTerm, store.ErrNoAccount, store.ErrNoFeed, store.ErrRewound} {
		if errors.Is(err, permanent) {
			return true
		}
	}
	return vedette.KindOf(err) == vedette.Invalid
}

// retry repeats a deed until it is done: meanwhile its account's changes wait, then the
// agent does, and in the end its API server. A deed that is refused makes its account
// void, of which the agent hears, and no other account.
func (p *Pipeline) retry(ctx context.Context, q *queue, term vedette.Term, action string, attempt func() error) error {
	retryDelay := backoff.NewExponentialBackOff()
	retryDelay.InitialInterval, retryDelay.MaxInterval = 100*time.Millisecond, 5*time.Second
	for {
		err := attempt()
		switch {
		case err == nil:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.lastStored = time.Now()
			return nil
		case ctx.Err() != nil:
			return p.retryStopped(ctx, q, term, action, err)
		case isPermanent(err):
			return p.revoke(q, term, fmt.Errorf("%s of %s: %w", action, q.account, err))
		}
		p.reportWaiting(q, err)
		select {
		case <-ctx.Done():
			return p.retryStopped(ctx, q, term, action, err)
		case <-time.After(retryDelay.NextBackOff()):
		}
	}
}

// retryStopped tells why a deed is tried no more.
func (p *Pipeline) retryStopped(ctx context.Context, q *queue, term vedette.Term, action string, lastErr error) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, errBlocking) {
		return cause
	}
	return p.revoke(q, term, vedette.Errorf(vedette.Unavailable, "%s of %s: the database has not done it for more than %v: %w: %v", action, q.account, maxStall, errBlocking, lastErr))
}

// revoke makes an account void: what was put of it in this term and is not stored
// will not be, or its mark would pass what is missing.
func (p *Pipeline) revoke(q *queue, term vedette.Term, reason error) error {
	p.mu.Lock()
	p.revoked[q.account] = max(p.revoked[q.account], term)
	p.mu.Unlock()
	p.responder.Revoke(q.account, term, reason)
	return errRevoked
}
