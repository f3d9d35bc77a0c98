package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
)

// errRevoked ends the tasks of a revoked account.
var errRevoked = errors.New("the account was revoked")

// executeTask executes a task, and retries it until it succeeds or its account is revoked.
func (p *Pipeline) executeTask(ctx context.Context, q *queue, t *task) error {
	switch {
	case t.batch != nil:
		err := p.commit(ctx, q, t.batch)
		if err == nil {
			p.noteDrift(t.batch)
		}
		return err
	case t.step.Type == Declare:
		return p.declare(ctx, q, t.step)
	case t.step.Type == VerifyFeed:
		return p.verify(ctx, t.step)
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
	if s.Anew {
		err := p.retry(ctx, q, s.Term, "invalidate feed", func() error {
			return p.ingest.store.InvalidateFeed(ctx, s.Account, s.Term, s.Feed)
		})
		if err != nil {
			return err
		}
	}
	err := p.retry(ctx, q, s.Term, "begin snapshot", func() error {
		return p.ingest.store.BeginSnapshot(ctx, s.Account, s.Term, s.Feed)
	})
	if err != nil {
		return err
	}
	p.omissions.reset(s.Account, s.Feed) // the snapshot contains them again
	return p.retry(ctx, q, s.Term, "read index", func() error { return p.index(ctx, s) })
}

// index sends the digests that the store holds of a feed. After an error it starts over, so the
// agent may get a digest twice.
func (p *Pipeline) index(ctx context.Context, s Step) error {
	read := p.ingest.store.IndexWithoutNames
	if s.NamedDigests {
		read = p.ingest.store.Index
	}
	err := read(ctx, s.Account, s.Feed, func(digests []uint64) error {
		return p.responder.Index(s.Account, s.Term, s.Feed, digests, false)
	})
	if err != nil {
		return err
	}
	return p.responder.Index(s.Account, s.Term, s.Feed, nil, true)
}

// isPermanent reports whether retrying cannot help: the account belongs to another agent or does
// not exist, the agent's data is invalid, or the snapshot that it continues is not current. All
// other errors may be temporary.
func isPermanent(err error) bool {
	for _, permanent := range []error{registry.ErrTerm, registry.ErrNoAccount, commit.ErrNoFeed, commit.ErrRewound} {
		if errors.Is(err, permanent) {
			return true
		}
	}
	return vedette.KindOf(err) == vedette.Invalid
}

// retry calls attempt until it succeeds. Meanwhile the account's changes wait, then the agent
// waits, and finally its API server does. After a permanent error it revokes the account, and no
// other account of the agent.
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

// retryStopped returns the reason why an attempt is not retried.
func (p *Pipeline) retryStopped(ctx context.Context, q *queue, term vedette.Term, action string, lastErr error) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, errBlocking) {
		return cause
	}
	return p.revoke(q, term, vedette.Errorf(vedette.Unavailable, "%s of %s: not completed for more than %v: %w: %v", action, q.account,
		maxStall, errBlocking, lastErr))
}

// revoke revokes an account: steps of this term that are not stored yet are discarded, because
// storing a later mark would skip the missing changes.
func (p *Pipeline) revoke(q *queue, term vedette.Term, reason error) error {
	p.mu.Lock()
	p.revoked[q.account] = max(p.revoked[q.account], term)
	p.mu.Unlock()
	p.responder.Revoke(q.account, term, reason)
	return errRevoked
}
