package agentserver

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// recordBudget limits the bytes of records of one source that wait for the database, so
// that a host with many changes leaves room for others in memory and in the queue of
// the database.
type recordBudget struct {
	limit int64 // bytes of one source

	mu      sync.Mutex
	sources map[string]*sourceBudget
}

// sourceBudget is the budget of one source, as sourceOf returns it.
type sourceBudget struct {
	bytes    *semaphore.Weighted
	sessions int // guarded by recordBudget.mu
}

func newRecordBudget(limit int64) *recordBudget {
	return &recordBudget{limit: limit, sources: map[string]*sourceBudget{}}
}

// open returns the accounting of a session. The caller must close it.
func (f *recordBudget) open(name string) *unstoredRecords {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sources[name]
	if s == nil {
		s = &sourceBudget{bytes: semaphore.NewWeighted(f.limit)}
		f.sources[name] = s
	}
	s.sessions++
	return &unstoredRecords{budget: f, name: name, source: s}
}

// unstoredRecords are the records of a session that are not stored yet.
type unstoredRecords struct {
	budget *recordBudget
	name   string
	source *sourceBudget

	mu     sync.Mutex
	sizes  []int64 // of the unacknowledged records, in order
	first  uint64  // the number of records before sizes
	closed bool
}

// add waits until the budget has room for a record, and counts it.
func (u *unstoredRecords) add(ctx context.Context, size int) error {
	n := min(int64(size), u.budget.limit)
	if err := u.source.bytes.Acquire(ctx, n); err != nil {
		return context.Cause(ctx)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		u.source.bytes.Release(n)
		return errSessionEnded
	}
	u.sizes = append(u.sizes, n)
	return nil
}

// stored releases the first n records.
func (u *unstoredRecords) stored(n uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.releaseLocked(min(n-min(n, u.first), uint64(len(u.sizes))))
}

func (u *unstoredRecords) releaseLocked(records uint64) {
	var sum int64
	for _, size := range u.sizes[:records] {
		sum += size
	}
	u.sizes = u.sizes[records:]
	u.first += records
	u.source.bytes.Release(sum)
}

// close releases everything that is not stored.
func (u *unstoredRecords) close() {
	u.mu.Lock()
	u.releaseLocked(uint64(len(u.sizes)))
	u.closed = true
	u.mu.Unlock()
	u.budget.mu.Lock()
	defer u.budget.mu.Unlock()
	u.source.sessions--
	if u.source.sessions == 0 {
		delete(u.budget.sources, u.name)
	}
}
