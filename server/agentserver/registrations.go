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
	// maxRegistrationWait is how long the roster may take over one account before the next of
	// its agent is asked about too, and maxConcurrentRegistrations how many may wait for it then.
	maxRegistrationWait        = time.Second
	maxConcurrentRegistrations = 16
)

// registrationQueue are what the roster is to be asked about an agent's accounts. They are
// asked one after the other, so that a storm of agents asks the database as many
// questions at once as there are agents, not accounts. An account about which that
// takes long, as when somebody holds its row, does not hold up the others, nor what
// the agent says meanwhile. What fails is asked again: the database may be away.
type registrationQueue struct {
	mu        sync.Mutex
	queue     []vedette.AccountName                               // in the order in which they came
	pending   map[vedette.AccountName]func(context.Context) error // the newest of each account
	running   map[vedette.AccountName]bool
	ready     chan struct{} // holds a token while some wait
	semaphore chan struct{}
}

func newRegistrationQueue() *registrationQueue {
	return &registrationQueue{pending: map[vedette.AccountName]func(context.Context) error{}, running: map[vedette.AccountName]bool{},
		ready: make(chan struct{}, 1), semaphore: make(chan struct{}, maxConcurrentRegistrations)}
}

// put has the roster asked, in place of what it was to be asked about the same account.
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

// next takes the first that waits; the function is nil where none does.
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

// superseded reports whether something else is to be asked about an account.
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

// run asks until ctx ends.
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

// register asks until there is an answer, ctx ends, or something else is to be asked.
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
