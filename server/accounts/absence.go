package accounts

import (
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// absence is for how long an account has been seen without an agent.
type absence struct {
	term     vedette.Term // of the last agent: another one begins another absence
	duration time.Duration
}

// absenceTracker are those of all accounts. They are kept in memory and not as times in
// the database: no clock but that of this process decides what is deleted, and
// what happened before it started counts for nothing.
type absenceTracker struct {
	mu        sync.Mutex
	byAccount map[vedette.AccountName]absence
}

// observe adds a span of time to the absences of accounts that have no agent, and
// returns those that have been absent for the grace period. The first time that
// an account is seen without an agent its absence begins.
func (a *absenceTracker) observe(rows []store.AccountRow, elapsed, grace time.Duration) (expired []store.AccountRow) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := map[vedette.AccountName]absence{}
	for _, row := range rows {
		if row.Orphaned.IsZero() {
			continue
		}
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

// reset says that an agent has spoken for an account.
func (a *absenceTracker) reset(account vedette.AccountName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byAccount, account)
}

// pollClock measures the time between two looks at the accounts. It counts no
// more than two intervals at once: in a longer one this process was frozen, or
// waited for the database, and no agent could have come back.
type pollClock struct {
	interval time.Duration
	lastOK   time.Time // of a look that succeeded; zero where the last one failed
}

// elapsed returns the time that counts since the last look, and nothing where one
// of the two failed.
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
