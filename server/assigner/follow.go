package assigner

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/membership"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// servers knows the servers that share the database.
type servers interface {
	Current() membership.Servers
	Changed() <-chan struct{}
}

// Sharing is what a registry needs that is one of several.
type Sharing struct {
	Servers servers
	// IsAlive reports whether a server is alive, as far as is known. It may use the database.
	IsAlive func(context.Context, vedette.ServerID) bool
	// Listen opens a stream of another server's agents and accounts, until its context ends. The function that it returns waits for the
	// next message.
	Listen func(ctx context.Context, server vedette.ServerID) (next func() (Update, error), err error)
}

// following are the servers that this one listens to.
type following struct {
	mu    sync.Mutex
	heard map[vedette.ServerID]time.Time // when each was heard last; only those that are followed
}

// hearsAll reports whether each other server has sent a message within assignment.PeerTimeout. Then this one knows what became of their
// accounts.
func (r *Registry) hearsAll() bool {
	now := time.Now()
	r.following.mu.Lock()
	defer r.following.mu.Unlock()
	for id := range r.sharing.Servers.Current() {
		if id != r.server && now.Sub(r.following.heard[id]) >= assignment.PeerTimeout {
			return false
		}
	}
	return true
}

func (f *following) note(server vedette.ServerID, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at.IsZero() {
		delete(f.heard, server)
		return
	}
	f.heard[server] = at
}

// followed is a process that is listened to.
type followed struct {
	token  string
	cancel context.CancelFunc
	ended  chan struct{} // closed when it is not listened to any more
}

func (f *followed) end() {
	if f != nil {
		f.cancel()
		<-f.ended
	}
}

// follow listens to all other servers until ctx ends.
func (r *Registry) follow(ctx context.Context) {
	var group errgroup.Group
	defer func() { _ = group.Wait() }()
	following := map[vedette.ServerID]*followed{}
	for {
		changed := r.sharing.Servers.Changed()
		current := r.sharing.Servers.Current()
		for id, s := range current {
			last := following[id]
			if id == r.server || last != nil && last.token == s.Token {
				continue
			}
			followCtx, cancel := context.WithCancel(ctx)
			f := &followed{token: s.Token, cancel: cancel, ended: make(chan struct{})}
			following[id] = f
			group.Go(func() error {
				defer close(f.ended)
				last.end() // what it says last must not count for this process
				r.followServer(followCtx, s)
				return nil
			})
		}
		for id, f := range following {
			if _, exists := current[id]; !exists {
				f.cancel()
				delete(following, id)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// followServer listens to one server until ctx ends. Package coherence reports servers that are not heard.
func (r *Registry) followServer(ctx context.Context, s sqldb.SharingServer) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 50*time.Millisecond, time.Second
	for ctx.Err() == nil {
		began := time.Now()
		err := r.followOnce(ctx, s.ID)
		r.log.Debug("another server does not tell about its agents", "server", s.ID, "error", err)
		if time.Since(began) > assignment.PeerTimeout {
			wait.Reset()
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait.NextBackOff()):
		}
	}
}

func (r *Registry) followOnce(ctx context.Context, server vedette.ServerID) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next, err := r.sharing.Listen(ctx, server)
	if err != nil {
		return err
	}
	defer r.step(assignment.PeerLost{Server: server})
	defer r.following.note(server, time.Time{})
	for {
		silence := time.AfterFunc(assignment.PeerTimeout, cancel)
		update, err := next()
		silence.Stop()
		if err != nil {
			return err
		}
		r.following.note(server, time.Now())
		r.handleMessage(server, update)
	}
}

// handleMessage handles a message of another server.
func (r *Registry) handleMessage(server vedette.ServerID, update Update) {
	r.step(assignment.PeerUpdated{Server: server, Agents: update.Agents, Left: update.Left, Accounts: update.Accounts,
		IsDraining: update.IsDraining})
	for _, o := range update.Offers {
		r.step(assignment.Offered{Server: server, Offer: o})
	}
	for _, d := range update.Declined {
		r.step(assignment.Declined{Server: server, Account: d.Account, Number: d.Number})
	}
}

// Drain makes the registry give its accounts to agents of other servers, and take none of theirs. It does not wait.
func (r *Registry) Drain() {
	r.updater.drain()
	r.step(assignment.Draining{})
}

// offersInterval is how often AwaitOffers looks.
const offersInterval = 20 * time.Millisecond

// AwaitOffers waits until other servers have taken, or declined, the accounts that they were offered, or until ctx ends.
func (r *Registry) AwaitOffers(ctx context.Context) {
	tick := time.NewTicker(offersInterval)
	defer tick.Stop()
	for r.openOffers() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (r *Registry) openOffers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fleet.Offered()
}

// offer offers an account to another server, which needs the marks of its feeds. An account that moves because this server drains waits
// until its operations have ended.
func (r *Registry) offer(e assignment.SendOffer) {
	r.mu.Lock()
	isBusy := r.isBusy
	r.mu.Unlock()
	isHeld := e.Reason == assignment.ReasonDrained && isBusy != nil && isBusy(e.Account)
	r.calls.run("", nil, func(ctx context.Context) {
		if !isHeld {
			r.storeMarks(ctx, e.Account)
		}
		if isHeld || !r.updater.send(e.Server, func(l *Listener) { l.offers = append(l.offers, e.Offer) }) {
			r.step(assignment.Declined{Server: e.Server, Account: e.Account, Number: e.Number, IsBusy: isHeld})
		}
	})
}

// decline tells another server that its offer is not taken. If it is not there, its offer expires.
func (r *Registry) decline(e assignment.Decline) {
	r.updater.send(e.Server, func(l *Listener) { l.declined = append(l.declined, Declined{e.Account, e.Number}) })
}
