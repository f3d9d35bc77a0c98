package upstream

import "github.com/vedette-io/vedette/internal/fair"

// copies is how often the bytes of an answer are in memory while it is merged: as received in a
// buffer that grows by doubling, and in the merged answer.
const copies = 3

// newBudget returns the memory for answers that are being merged. Nobody waits for it: an answer that finds
// no memory is left out. One caller has half of it, so that slow readers do not take the memory of others.
func newBudget(bytes int64) *fair.Line {
	return fair.New(fair.Config{Capacity: bytes, Share: bytes / 2})
}

// allowance is the memory of one answer.
type allowance struct {
	budget *fair.Line
	caller string
	grant  *fair.Grant // nil for none yet
}

// take reserves memory for bytes of an answer. It reports false if there is none.
func (a *allowance) take(bytes int) bool {
	n := int64(bytes) * copies
	if n == 0 {
		return true
	}
	if a.grant == nil {
		if a.grant = a.budget.TryAcquire(a.caller, 1); a.grant == nil {
			return false
		}
		n-- // grants grow by what was asked for, while the first request counts as a share at most
	}
	return a.grant.TryGrow(n)
}

// release returns all memory.
func (a *allowance) release() {
	a.grant.Release()
	a.grant = nil
}
