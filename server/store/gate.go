package store

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/vedette-io/vedette"
)

// gates let one writer at a time change an account's objects within this
// process. A commit reads before its transaction begins, so that it holds locks
// in the database for a short time only; the gate and the term together make
// sure that what it read is still so when it writes. Who waits is let in in turn.
type gates struct {
	mu      sync.Mutex
	open    map[vedette.AccountName]*gate
	doubted map[vedette.AccountName]bool // a transaction of ours may still be under way
}

type gate struct {
	busy  chan struct{} // holds one element while someone is inside
	turns atomic.Int64  // that have ended: who finds as many as before knows that nobody was inside
	users int           // inside, waiting or preparing; guarded by gates.mu
}

// enter waits for its turn. Whoever enters must call leave.
func (g *gates) enter(ctx context.Context, account vedette.AccountName) (leave func(), err error) {
	at := g.join(account)
	if err := at.enter(ctx); err != nil {
		g.part(account, at)
		return nil, err
	}
	return func() { at.leave(); g.part(account, at) }, nil
}

func (at *gate) enter(ctx context.Context) error {
	select {
	case at.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (at *gate) leave() {
	at.turns.Add(1)
	<-at.busy
}

// doubt notes that the outcome of an account's transaction is not known: its
// commit may be on its way through the network, or through the database.
func (g *gates) doubt(account vedette.AccountName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.doubted == nil {
		g.doubted = map[vedette.AccountName]bool{}
	}
	g.doubted[account] = true
}

// trust ends doubt.
func (g *gates) trust(account vedette.AccountName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.doubted, account)
}

func (g *gates) inDoubt(account vedette.AccountName) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.doubted[account]
}

// join returns an account's gate, which stays the same one until part.
func (g *gates) join(account vedette.AccountName) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = map[vedette.AccountName]*gate{}
	}
	at := g.open[account]
	if at == nil {
		at = &gate{busy: make(chan struct{}, 1)}
		g.open[account] = at
	}
	at.users++
	return at
}

func (g *gates) part(account vedette.AccountName, at *gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at.users--
	if at.users == 0 {
		delete(g.open, account)
	}
}
