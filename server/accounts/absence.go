package accounts

import (
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/registry"
)

// absence records for how long an account has had no agent.
type absence struct {
	term     vedette.Term // of the last agent; a new term starts a new absence
	duration time.Duration
}

// absenceTracker holds the absences of all accounts. They are durations in memory, not times in the
// database, because only this process's clock may decide what is deleted, and time before its start
// does not count.
//
// When the database recorded since when an account had no agent, a planned stop, a clock that was set forward, or one server
// with a wrong clock was enough to remove everything. A server that is restarted more often than the grace period removes
// nothing now, which is cheaper than the opposite mistake. The removal checks in its transaction whether the account's term
// is still the one that was counted.
type absenceTracker struct {
	mu        sync.Mutex
	byAccount map[vedette.AccountName]absence
}

// observe adds elapsed to the absence of the accounts that have no agent, and returns those
// whose absence has reached the grace period. An absence starts at zero when observe first sees the
// account without an agent.
func (a *absenceTracker) observe(rows []registry.Account, elapsed, grace time.Duration) (expired []registry.Account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := map[vedette.AccountName]absence{}
	for _, row := range rows {
		current := absence{term: row.Term}
		if previous, ok := a.byAccount[row.Name]; ok && previous.term == row.Term {
			current.duration = previous.duration + elapsed
		}
		now[row.Name] = current
		if current.duration >= grace {
			expired = append(expired, row)
		}
	}
	a.byAccount = now
	return expired
}

// reset ends an account's absence, because an agent has registered it.
func (a *absenceTracker) reset(account vedette.AccountName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byAccount, account)
}

// pollClock measures the time between two polls of the accounts. It counts at most two intervals at
// once, because a longer gap means that this process was frozen or waited for the database, so no
// agent could have come back.
type pollClock struct {
	interval time.Duration
	lastOK   time.Time // time of the last poll; zero if it failed
}

// elapsed returns the time since the last poll, or 0 if this poll or the last one failed.
func (o *pollClock) elapsed(ok bool) time.Duration {
	last, now := o.lastOK, time.Now()
	o.lastOK = now
	if !ok {
		o.lastOK = time.Time{}
	}
	if last.IsZero() || !ok {
		return 0
	}
	return min(now.Sub(last), 2*o.interval)
}
