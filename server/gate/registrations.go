package gate

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
	// mostAsking is how long the roster may take over one account before the next of
	// its agent is asked about too, and asksAtOnce how many may wait for it then.
	mostAsking = time.Second
	asksAtOnce = 16
)

// registrations are what the roster is to be asked about an agent's accounts. They are
// asked one after the other, so that a storm of agents asks the database as many
// questions at once as there are agents, not accounts. An account about which that
// takes long, as when somebody holds its row, does not hold up the others, nor what
// the agent says meanwhile. What fails is asked again: the database may be away.
type registrations struct {
	mu      sync.Mutex
	waiting []vedette.AccountName                               // in the order in which they came
	wanted  map[vedette.AccountName]func(context.Context) error // the newest of each account
	asking  map[vedette.AccountName]bool
	ready   chan struct{} // holds a token while some wait
	slots   chan struct{}
}

func newRegistrations() *registrations {
	return &registrations{wanted: map[vedette.AccountName]func(context.Context) error{}, asking: map[vedette.AccountName]bool{},
		ready: make(chan struct{}, 1), slots: make(chan struct{}, asksAtOnce)}
}

// put has the roster asked, in place of what it was to be asked about the same account.
func (r *registrations) put(account vedette.AccountName, ask func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, waits := r.wanted[account]
	r.wanted[account] = ask
	if !waits && !r.asking[account] {
		r.waitLocked(account)
	}
}

func (r *registrations) waitLocked(account vedette.AccountName) {
	r.waiting = append(r.waiting, account)
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// next takes the first that waits; the function is nil where none does.
func (r *registrations) next() (vedette.AccountName, func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return "", nil
	}
	account := r.waiting[0]
	r.waiting = r.waiting[1:]
	ask := r.wanted[account]
	delete(r.wanted, account)
	r.asking[account] = true
	return account, ask
}

// superseded reports whether something else is to be asked about an account.
func (r *registrations) superseded(account vedette.AccountName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wanted[account] != nil
}

func (r *registrations) finish(account vedette.AccountName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.asking, account)
	if r.wanted[account] != nil {
		r.waitLocked(account)
	}
}

// run asks until ctx ends.
func (r *registrations) run(ctx context.Context, group *errgroup.Group, log *slog.Logger) error {
	for {
		account, ask := r.next()
		if ask == nil {
			select {
			case <-r.ready:
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		done := make(chan struct{})
		group.Go(func() error {
			defer func() { <-r.slots }()
			defer close(done)
			r.ask(ctx, account, ask, log.With("account", account))
			return nil
		})
		patience := time.NewTimer(mostAsking)
		select {
		case <-done:
		case <-patience.C:
		case <-ctx.Done():
		}
		patience.Stop()
	}
}

// ask asks until there is an answer, ctx ends, or something else is to be asked.
func (r *registrations) ask(ctx context.Context, account vedette.AccountName, ask func(context.Context) error, log *slog.Logger) {
	defer r.finish(account)
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 100*time.Millisecond, 5*time.Second
	for logged := false; ; logged = true {
		err := ask(ctx)
		if err == nil || ctx.Err() != nil || r.superseded(account) {
			return
		}
		if !logged {
			log.Warn("account can't be registered yet; tried again", "error", err)
		}
		select {
		case <-time.After(wait.NextBackOff()):
		case <-ctx.Done():
			return
		}
	}
}
