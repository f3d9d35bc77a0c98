package agentserver

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// recordBudget bounds the bytes of records that the agents of one source have waiting for
// the database, so that a host which writes all that it can leaves room for others:
// in memory, and in the database's queue.
type recordBudget struct {
	limit int64 // of one source

	mu      sync.Mutex
	sources map[string]*sourceBudget
}

// sourceBudget is a host, as sourceOf names it.
type sourceBudget struct {
	bytes    *semaphore.Weighted
	sessions int // guarded by inflight.mu
}

func newRecordBudget(limit int64) *recordBudget {
	return &recordBudget{limit: limit, sources: map[string]*sourceBudget{}}
}

// open returns what a session's records are counted by. Its owner closes it.
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

// unstoredRecords is a session's records that are not stored yet.
type unstoredRecords struct {
	budget *recordBudget
	name   string
	source *sourceBudget

	mu     sync.Mutex
	sizes  []int64 // of the records that are not acknowledged, in their order
	first  uint64  // how many were before them
	closed bool
}

// add waits until a record may be put, and counts it.
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

// stored says that the first n records are stored.
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

// close gives up what is not stored.
func (u *unstoredRecords) close() {
	u.mu.Lock()
	u.releaseLocked(uint64(len(u.sizes)))
	u.closed = true
	u.mu.Unlock()
	u.budget.mu.Lock()
	defer u.budget.mu.Unlock()
	if u.source.sessions--; u.source.sessions == 0 {
		delete(u.budget.sources, u.name)
	}
}
