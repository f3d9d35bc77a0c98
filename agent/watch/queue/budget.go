package queue

import "time"

// Budget bounds how many snapshots run at the same time. A zero value means the default, which is
// at the end of each comment. docs/decisions/0099 says how snapshots of many accounts take turns, and what was
// weighed.
type Budget struct {
	// Fast bounds the snapshots of API servers that respond in time, over all accounts; 8. Each costs
	// a read buffer in the agent and a page of objects in the API server.
	Fast int
	// Total bounds all snapshots of all accounts, also those of API servers that hang; 1,000.
	Total int
	// PerAccount bounds all snapshots of one account; 4.
	PerAccount int
	// GroupSize accounts start without marks at the same time, and the next ones GroupDelay later. No
	// limit if one of them is 0.
	GroupSize  int
	GroupDelay time.Duration
}

const (
	defaultFast       = 8
	defaultTotal      = 1000
	defaultPerAccount = 4
)

func (b Budget) withDefaults() Budget {
	for _, n := range []struct {
		value    *int
		fallback int
	}{{&b.Fast, defaultFast}, {&b.Total, defaultTotal}, {&b.PerAccount, defaultPerAccount}} {
		if *n.value <= 0 {
			*n.value = n.fallback
		}
	}
	b.Fast = min(b.Fast, b.Total)
	return b
}

// maxSlowStarts is how many snapshots may begin for API servers that are known to be slow. The
// others keep the rest of the budget, so that clusters that hang do not use up all of it.
func (b Budget) maxSlowStarts() int { return max(1, b.Total/2) }

// AtMost sets the bounds to those of the predecessor's configuration, in which 0 means no limit. It does not
// raise Fast and PerAccount, because they also bound the memory of the agent.
func (b Budget) AtMost(total, perAccount int) Budget {
	b = b.withDefaults()
	if total > 0 {
		b.Total = total
	}
	if perAccount > 0 {
		b.PerAccount = min(b.PerAccount, perAccount)
	}
	return b.withDefaults()
}
