package store

import (
	"sync"

	"github.com/vedette-io/vedette"
)

// accountLog remembers which accounts have changed: they were registered, acquired, released or
// removed, their feeds were declared or changed their state, or their Namespaces changed. Marks and
// numbers of objects change with every commit and do not count. Readers that keep accounts in memory thereby need to read
// only those that changed.
//
// An account is added after each transaction that may have changed it, also if the transaction
// failed, because its outcome may be unknown.
type accountLog struct {
	mu    sync.Mutex
	start uint64                // entries before it are unknown
	end   uint64                // number of entries so far
	names []vedette.AccountName // a ring: entry n is at n % accountLogSize
}

// accountLogSize bounds the memory of the log. It holds the registration of a whole fleet after
// the server has started.
const accountLogSize = 1 << 14

func (l *accountLog) add(account vedette.AccountName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		l.names = make([]vedette.AccountName, accountLogSize)
	}
	l.names[l.end%accountLogSize] = account
	l.end++
	if l.end-l.start > accountLogSize {
		l.start = l.end - accountLogSize
	}
}

// reset makes the log incomplete for all readers.
func (l *accountLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end++
	l.start = l.end
}

// since returns the accounts that changed after the first n entries, each once, and the number of
// entries now. It reports false if the log does not reach back that far.
func (l *accountLog) since(n uint64) (accounts []vedette.AccountName, end uint64, complete bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < l.start || n > l.end {
		return nil, l.end, false
	}
	seen := map[vedette.AccountName]bool{}
	for ; n < l.end; n++ {
		if name := l.names[n%accountLogSize]; !seen[name] {
			seen[name] = true
			accounts = append(accounts, name)
		}
	}
	return accounts, l.end, true
}

// ChangedAccounts returns the accounts that this Store has changed since an earlier call returned
// the given position, and the position of now. It reports false if that was too long ago. Changes
// of marks and of numbers of objects do not count.
func (s *Store) ChangedAccounts(since uint64) (accounts []vedette.AccountName, position uint64, complete bool) {
	return s.changed.since(since)
}

// isNotable reports whether an update changes what readers of a feed's state see: they know
// already that a feed is live and has no message.
func (u FeedUpdate) isNotable(wasLive bool) bool {
	return u.Note != nil || u.State != "" && (u.State != vedette.FeedLive || u.Message != "" || !wasLive)
}

// changesState reports whether a plan changes the state or the message of a feed.
func (p *plan) changesState() bool {
	for key, u := range p.feeds {
		if u.isNotable(p.baseline.live[key]) {
			return true
		}
	}
	return false
}
