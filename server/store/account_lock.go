package store

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/vedette-io/vedette"
)

// accountLocks let one writer at a time change an account's objects within this
// process. A commit reads before its transaction begins, so that it holds locks
// in the database for a short time only; the gate and the term together make
// sure that what it read is still so when it writes. Who waits is let in in turn.
type accountLocks struct {
	mu        sync.Mutex
	byAccount map[vedette.AccountName]*accountLock
	uncertain map[vedette.AccountName]bool // a transaction of ours may still be under way
}

type accountLock struct {
	held       chan struct{} // holds one element while someone is inside
	generation atomic.Int64  // that have ended: who finds as many as before knows that nobody was inside
	refs       int           // inside, waiting or preparing; guarded by gates.mu
}

// lock waits for its turn. Whoever enters must call leave.
func (l *accountLocks) lock(ctx context.Context, account vedette.AccountName) (unlock func(), err error) {
	lock := l.retain(account)
	if err := lock.lock(ctx); err != nil {
		l.release(account, lock)
		return nil, err
	}
	return func() { lock.unlock(); l.release(account, lock) }, nil
}

func (l *accountLock) lock(ctx context.Context) error {
	select {
	case l.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *accountLock) unlock() {
	l.generation.Add(1)
	<-l.held
}

// markUncertain notes that the outcome of an account's transaction is not known: its
// commit may be on its way through the network, or through the database.
func (l *accountLocks) markUncertain(account vedette.AccountName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.uncertain == nil {
		l.uncertain = map[vedette.AccountName]bool{}
	}
	l.uncertain[account] = true
}

// clearUncertain ends doubt.
func (l *accountLocks) clearUncertain(account vedette.AccountName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.uncertain, account)
}

func (l *accountLocks) isUncertain(account vedette.AccountName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.uncertain[account]
}

// retain returns an account's gate, which stays the same one until part.
func (l *accountLocks) retain(account vedette.AccountName) *accountLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byAccount == nil {
		l.byAccount = map[vedette.AccountName]*accountLock{}
	}
	lock := l.byAccount[account]
	if lock == nil {
		lock = &accountLock{held: make(chan struct{}, 1)}
		l.byAccount[account] = lock
	}
	lock.refs++
	return lock
}

func (l *accountLocks) release(account vedette.AccountName, lock *accountLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock.refs--
	if lock.refs == 0 {
		delete(l.byAccount, account)
	}
}
