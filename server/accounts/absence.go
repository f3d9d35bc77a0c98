package accounts

import (
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// absence is for how long an account has been seen without an agent.
type absence struct {
	term   vedette.Term // of the last agent: another one begins another absence
	lasted time.Duration
}

// absences are those of all accounts. They are kept in memory and not as times in
// the database: no clock but that of this process decides what is deleted, and
// what happened before it started counts for nothing.
type absences struct {
	mu    sync.Mutex
	known map[vedette.AccountName]absence
}

// observe adds a span of time to the absences of accounts that have no agent, and
// returns those that have been absent for the grace period. The first time that
// an account is seen without an agent its absence begins.
func (a *absences) observe(rows []store.AccountRow, elapsed, grace time.Duration) (over []store.AccountRow) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := map[vedette.AccountName]absence{}
	for _, row := range rows {
		if row.Orphaned.IsZero() {
			continue
		}
		next := absence{term: row.Term}
		if before, ok := a.known[row.Name]; ok && before.term == row.Term {
			next.lasted = before.lasted + elapsed
		}
		now[row.Name] = next
		if next.lasted >= grace {
			over = append(over, row)
		}
	}
	a.known = now
	return over
}

// end says that an agent has spoken for an account.
func (a *absences) end(account vedette.AccountName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, account)
}

// observation measures the time between two looks at the accounts. It counts no
// more than two intervals at once: in a longer one this process was frozen, or
// waited for the database, and no agent could have come back.
type observation struct {
	interval time.Duration
	last     time.Time // of a look that succeeded; zero where the last one failed
}

// elapsed returns the time that counts since the last look, and nothing where one
// of the two failed.
func (o *observation) elapsed(succeeded bool) time.Duration {
	last, now := o.last, time.Now()
	o.last = now
	if !succeeded {
		o.last = time.Time{}
	}
	if last.IsZero() || !succeeded {
		return 0
	}
	return min(now.Sub(last), 2*o.interval)
}
