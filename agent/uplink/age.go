package uplink

import (
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// AccountFreshness is up to when an account is known to be complete, by the agent's clock.
type AccountFreshness struct {
	Account vedette.AccountName
	Term    vedette.Term // in which this agent reports the account
	// Live is about the feeds that are live, All about those that were complete before, too. Zero
	// means that it is unknown.
	Live, All time.Time
}

// ProofInterval returns how often to find out up to when an account is complete: at the interval of
// heartbeats, because the server learns it from these.
func (u *Uplink) ProofInterval() time.Duration {
	const fallback, longest = 3 * time.Second, 15 * time.Second
	interval := time.Duration(u.heartbeatInterval.Load())
	if interval == 0 {
		return fallback
	}
	return min(interval, longest)
}

// proofLead is how long before a heartbeat the agent begins to find out. The accounts of an agent share this time, so
// that a thousand of them do not ask their API servers at the same moment.
func (u *Uplink) proofLead() time.Duration { return min(time.Second, u.ProofInterval()/3) }

// ageLister adds the ages of accounts to the heartbeats of one connection.
type ageLister struct {
	// commonAge is up to which age accounts share the age of the heartbeat. It is longer than proofLead, so that an
	// agent of a thousand healthy accounts lists none of them.
	commonAge time.Duration
	listed    map[vedette.AccountName]vedette.Term // that the server knows to be up to date from then on
}

// addTo adds ages to a heartbeat. Its own age becomes that of the oldest account up to commonAge. Older
// accounts are listed, so that they do not make others look old. Each account is listed once in a term,
// because the server takes nothing for granted that was said before it assigned the account.
func (l *ageLister) addTo(h *wire.AgentHeartbeat, accounts []AccountFreshness, now time.Time) {
	h.ListsAccounts = true
	listed := make(map[vedette.AccountName]vedette.Term, len(accounts))
	for _, a := range accounts {
		live, all := ageAt(a.Live, now), ageAt(a.All, now)
		isCommon := live != nil && all != nil && max(*live, *all) <= l.commonAge.Milliseconds()
		if isCommon {
			h.AgeMillis = new(max(h.GetAgeMillis(), *live, *all))
		}
		if !isCommon || l.listed[a.Account] != a.Term {
			h.Accounts = append(h.Accounts, &wire.AccountAge{Account: string(a.Account), Term: int64(a.Term), LiveMillis: live, AllMillis: all})
		}
		listed[a.Account] = a.Term
	}
	l.listed = listed
}

// ageAt returns the age of a time in milliseconds, nil if it is zero. It rounds up, because data must never
// look younger than it is.
func ageAt(at, now time.Time) *int64 {
	if at.IsZero() {
		return nil
	}
	return new(max(0, now.Sub(at)+time.Millisecond-1).Milliseconds())
}
