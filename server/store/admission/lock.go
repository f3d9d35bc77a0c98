package admission

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/vedette-io/vedette"
)

// Locks has a lock for each account, so that one writer of this process at a time changes
// the account's objects. A commit compares its batch with what is stored before its
// transaction begins, because rows of the database should be locked for a short time
// only; lock and term together ensure that what it read is still true when it writes.
// Waiters are served in order. The zero value is ready to use.
type Locks struct {
	mu        sync.Mutex
	byAccount map[vedette.AccountName]*accountLock
	uncertain map[vedette.AccountName]bool // the outcome of a transaction is not known
}

type accountLock struct {
	held       chan struct{} // holds one element while the lock is held
	generation atomic.Int64  // number of unlocks
	handles    int           // guarded by Locks.mu
}

// Handle is a writer's reference to an account's lock. A Handle must be closed.
type Handle struct {
	locks   *Locks
	account vedette.AccountName
	lock    *accountLock
}

// Handle returns a handle for an account, without locking it.
func (l *Locks) Handle(account vedette.AccountName) *Handle {
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
	lock.handles++
	return &Handle{l, account, lock}
}

// Close releases the handle, which must not hold the lock.
func (h *Handle) Close() {
	h.locks.mu.Lock()
	defer h.locks.mu.Unlock()
	h.lock.handles--
	if h.lock.handles == 0 {
		delete(h.locks.byAccount, h.account)
	}
}

// Lock waits for the lock. Its error is that of ctx.
func (h *Handle) Lock(ctx context.Context) error {
	select {
	case h.lock.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unlock releases the lock.
func (h *Handle) Unlock() {
	h.lock.generation.Add(1)
	<-h.lock.held
}

// Generation counts the unlocks of the account. If it is the same as before, nobody else has
// held the lock in between.
func (h *Handle) Generation() int64 { return h.lock.generation.Load() }

// Lock waits for an account's lock. The caller must call unlock.
func (l *Locks) Lock(ctx context.Context, account vedette.AccountName) (unlock func(), err error) {
	h := l.Handle(account)
	if err := h.Lock(ctx); err != nil {
		h.Close()
		return nil, err
	}
	return func() { h.Unlock(); h.Close() }, nil
}

// MarkUncertain notes that the outcome of an account's transaction is not known: the
// database may still commit it.
func (l *Locks) MarkUncertain(account vedette.AccountName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.uncertain == nil {
		l.uncertain = map[vedette.AccountName]bool{}
	}
	l.uncertain[account] = true
}

// ClearUncertain notes that all transactions of an account have ended.
func (l *Locks) ClearUncertain(account vedette.AccountName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.uncertain, account)
}

// IsUncertain reports whether MarkUncertain was called since the last ClearUncertain.
func (l *Locks) IsUncertain(account vedette.AccountName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.uncertain[account]
}
