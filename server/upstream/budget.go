package upstream

import "sync"

// copies is how often the bytes of an answer are in memory while it is merged: as received in a
// buffer that grows by doubling, and in the merged answer.
const copies = 3

// budget is the memory for answers that are being merged. It never waits: an answer that finds no
// memory is left out. It is safe for concurrent use.
type budget struct {
	share int64 // maximum of one caller, so that slow readers do not take the memory of others

	mu   sync.Mutex
	free int64
	used map[string]int64 // by caller
}

func newBudget(bytes int64) *budget {
	return &budget{share: bytes / 2, free: bytes, used: map[string]int64{}}
}

// allowance is the memory of one answer.
type allowance struct {
	budget *budget
	caller string
	held   int64
}

// take reserves memory for bytes of an answer. It reports false if there is none.
func (a *allowance) take(bytes int) bool {
	n, b := int64(bytes)*copies, a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.free || b.used[a.caller]+n > b.share {
		return false
	}
	b.free -= n
	b.used[a.caller] += n
	a.held += n
	return true
}

// release returns all memory.
func (a *allowance) release() {
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += a.held
	b.used[a.caller] -= a.held
	if b.used[a.caller] == 0 {
		delete(b.used, a.caller)
	}
	a.held = 0
}
