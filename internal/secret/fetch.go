package secret

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
)

// Timing bounds how long engines may take. Zero values mean the defaults.
type Timing struct {
	Attempt time.Duration // one attempt to fetch a document; 10 s
	Total   time.Duration // all attempts of a load; 30 s
}

func (t Timing) withDefaults() Timing {
	return Timing{Attempt: cmp.Or(t.Attempt, 10*time.Second), Total: cmp.Or(t.Total, 30*time.Second)}
}

func (t Timing) start() *retryBudget {
	return &retryBudget{attempt: t.Attempt, until: time.Now().Add(t.Total)}
}

// retryBudget is the time that is left for the attempts of a load.
type retryBudget struct {
	attempt time.Duration
	until   time.Time
}

// options returns how often to retry: never when the time is used up, but the first attempt is
// always made.
func (b *retryBudget) options() []backoff.RetryOption {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 200*time.Millisecond, 3*time.Second
	left := time.Until(b.until)
	if left <= 0 {
		return []backoff.RetryOption{backoff.WithMaxTries(1)}
	}
	return []backoff.RetryOption{backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(left)}
}

// fetch is the fetching of a document that is under way.
type fetch struct {
	done     chan struct{} // closed when document and err are set
	document []byte
	err      error
}

// kept returns a document that was fetched before.
func (r *Resolver) kept(key string) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	document, ok := r.documents[key]
	return document, ok
}

// fetchOnce fetches a document. Calls for the same document at the same time share one fetch.
func (r *Resolver) fetchOnce(ctx context.Context, at located, b *retryBudget) ([]byte, error) {
	r.mu.Lock()
	running, ok := r.fetching[at.key()]
	if !ok {
		running = &fetch{done: make(chan struct{})}
		r.fetching[at.key()] = running
	}
	r.mu.Unlock()
	if ok {
		<-running.done
		return running.document, running.err
	}
	running.document, running.err = r.retry(ctx, at, b)
	r.mu.Lock()
	delete(r.fetching, at.key())
	if running.err == nil {
		r.documents[at.key()] = running.document
	}
	r.mu.Unlock()
	close(running.done)
	return running.document, running.err
}

// retry fetches a document until that succeeds, fails for good, or the time is used up.
func (r *Resolver) retry(ctx context.Context, at located, b *retryBudget) ([]byte, error) {
	attempt := func() ([]byte, error) {
		timeout := fmt.Errorf("no answer within %s", b.attempt)
		ctx, cancel := context.WithTimeoutCause(ctx, b.attempt, timeout)
		defer cancel()
		document, err := at.location.Fetch(ctx)
		if err != nil && vedette.KindOf(err) != vedette.Unavailable {
			return nil, backoff.Permanent(err)
		}
		return document, err
	}
	return backoff.Retry(ctx, attempt, b.options()...)
}
