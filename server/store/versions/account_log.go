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

func (l *accountLog) since(mark uint64) (accounts []vedette.AccountName, now uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == mark {
		return nil, mark
	}
	for account, at := range l.changed {
		if at > mark {
			accounts = append(accounts, account)
		}
	}
	return accounts, l.last
}

// ChangedAccounts returns the accounts whose registration, feeds or Namespaces have changed since
// an earlier call, or may have, and the mark for the next call. The first mark is 0. A reader that
// keeps what it computes of accounts must call it before it reads them. Only changes by this
// process are known, which suffices because only one process at a time writes, see the lease.
func (v *Versions) ChangedAccounts(since uint64) (accounts []vedette.AccountName, now uint64) {
	v.SettleOld()
	return v.AccountLog.since(since)
}
