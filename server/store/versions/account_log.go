package versions

import (
	"sync"

	"github.com/vedette-io/vedette"
)

// accountLog knows when each account last changed in what its users see of it: registration, feeds
// and Namespaces. Its memory is bounded by the accounts that this process has seen. The zero value
// is ready to use.
type accountLog struct {
	mu      sync.Mutex
	last    uint64
	floor   uint64 // all accounts changed then, as far as is known
	changed map[vedette.AccountName]uint64
}

// Note records a change. It must be called after the transaction, or else a reader takes what was
// before the change for what is after it.
func (l *accountLog) Note(account vedette.AccountName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = map[vedette.AccountName]uint64{}
	}
	l.last++
	l.changed[account] = l.last
}

// noteAll records that any account may have changed, also some that are not known.
func (l *accountLog) noteAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	l.floor, l.changed = l.last, nil
}

func (l *accountLog) since(mark uint64) (c AccountChanges) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Mark, c.All = l.last, mark < l.floor
	if l.last == mark || c.All {
		return c
	}
	for account, at := range l.changed {
		if at > mark {
			c.Names = append(c.Names, account)
		}
	}
	return c
}

// AccountChanges are the accounts that have changed since a mark, or may have.
type AccountChanges struct {
	Names []vedette.AccountName
	All   bool   // any account may have changed; Names is empty
	Mark  uint64 // for the next call
}

// ChangedAccounts returns the accounts whose registration, feeds or Namespaces have changed since
// an earlier call, or may have. The first mark is 0. A reader that
// keeps what it computes of accounts must call it before it reads them.
func (v *Versions) ChangedAccounts(since uint64) AccountChanges {
	v.Refresh()
	return v.AccountLog.since(since)
}
