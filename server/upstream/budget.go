package upstream

import "sync"

// copies is how often the bytes of an answer are in memory while it is merged: as received in a
// buffer that grows by doubling, and in the merged answer.
const copies = 3

// budget is the memory for answers that are being merged. It never waits: an answer that finds no
// memory is left out. It is safe for concurrent use.
type budget struct {
	mu   sync.Mutex
	free int64
	most int64 // of one answer
}

func newBudget(bytes int64) *budget { return &budget{free: bytes, most: bytes / 2} }

// allowance is the memory of one answer.
type allowance struct {
	budget *budget
	used   int64
}

// take reserves memory for bytes of an answer. It reports false if there is none.
func (a *allowance) take(bytes int) bool {
	n := int64(bytes) * copies
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if n > a.budget.free || a.used+n > a.budget.most {
		return false
	}
	a.budget.free -= n
	a.used += n
	return true
}

// release returns all memory.
func (a *allowance) release() {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.budget.free += a.used
	a.used = 0
}
