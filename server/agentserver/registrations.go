package agentserver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
)

const (
	// After maxRegistrationWait for one account, the next account of the agent is registered
	// too; at most maxConcurrentRegistrations at once.
	maxRegistrationWait        = time.Second
	maxConcurrentRegistrations = 16
)

// registrationQueue registers the accounts of one agent. It registers one after the
// other, so that the number of concurrent queries is the number of agents and not of
// accounts when many agents reconnect. A slow account, for example one whose row is
// locked, delays neither the other accounts nor the agent's messages. Failed
// registrations are retried, because the database may be unavailable.
type registrationQueue struct {
	mu        sync.Mutex
	queue     []vedette.AccountName                               // in order of arrival
	pending   map[vedette.AccountName]func(context.Context) error // the newest registration of each account
	running   map[vedette.AccountName]bool
	ready     chan struct{} // has a token while the queue is not empty
	semaphore chan struct{}
}

func newRegistrationQueue() *registrationQueue {
	return &registrationQueue{pending: map[vedette.AccountName]func(context.Context) error{}, running: map[vedette.AccountName]bool{},
		ready: make(chan struct{}, 1), semaphore: make(chan struct{}, maxConcurrentRegistrations)}
}

// put queues a registration. It replaces a pending one of the same account.
func (q *registrationQueue) put(account vedette.AccountName, register func(context.Context) error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, queued := q.pending[account]
	q.pending[account] = register
	if !queued && !q.running[account] {
		q.enqueueLocked(account)
	}
}

func (q *registrationQueue) enqueueLocked(account vedette.AccountName) {
	q.queue = append(q.queue, account)
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// next removes the first registration from the queue. The function is nil if the queue
// is empty.
func (q *registrationQueue) next() (vedette.AccountName, func(context.Context) error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		return "", nil
	}
	account := q.queue[0]
	q.queue = q.queue[1:]
	register := q.pending[account]
	delete(q.pending, account)
	q.running[account] = true
	return account, register
}

// superseded reports whether there is a newer registration of an account.
func (q *registrationQueue) superseded(account vedette.AccountName) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pending[account] != nil
}

func (q *registrationQueue) finish(account vedette.AccountName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.running, account)
	if q.pending[account] != nil {
		q.enqueueLocked(account)
	}
}

// run executes registrations until ctx ends.
func (q *registrationQueue) run(ctx context.Context, group *errgroup.Group, log *slog.Logger) error {
	for {
		account, register := q.next()
		if register == nil {
			select {
			case <-q.ready:
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		select {
		case q.semaphore <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		done := make(chan struct{})
		group.Go(func() error {
			defer func() { <-q.semaphore }()
			defer close(done)
			q.register(ctx, account, register, log.With("account", account))
			return nil
		})
		timer := time.NewTimer(maxRegistrationWait)
		select {
		case <-done:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// register retries until the registration succeeds, ctx ends, or there is a newer one.
func (q *registrationQueue) register(ctx context.Context, account vedette.AccountName, ask func(context.Context) error, log *slog.Logger) {
	defer q.finish(account)
	retryDelay := backoff.NewExponentialBackOff()
	retryDelay.InitialInterval, retryDelay.MaxInterval = 100*time.Millisecond, 5*time.Second
	for logged := false; ; logged = true {
		err := ask(ctx)
		if err == nil || ctx.Err() != nil || q.superseded(account) {
			return
		}
		if !logged {
			log.Warn("failed to register account; retrying", "error", err)
		}
		select {
		case <-time.After(retryDelay.NextBackOff()):
		case <-ctx.Done():
			return
		}
	}
}
