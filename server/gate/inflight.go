package gate

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// inflight bounds the bytes of records that the agents of one source have waiting for
// the database, so that a host which writes all that it can leaves room for others:
// in memory, and in the database's queue.
type inflight struct {
	limit int64 // of one source

	mu      sync.Mutex
	sources map[string]*source
}

// source is a host, as sourceOf names it.
type source struct {
	bytes    *semaphore.Weighted
	sessions int // guarded by inflight.mu
}

func newInflight(limit int64) *inflight {
	return &inflight{limit: limit, sources: map[string]*source{}}
}

// open returns what a session's records are counted by. Its owner closes it.
func (f *inflight) open(name string) *unstored {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sources[name]
	if s == nil {
		s = &source{bytes: semaphore.NewWeighted(f.limit)}
		f.sources[name] = s
	}
	s.sessions++
	return &unstored{of: f, name: name, source: s}
}

// unstored is a session's records that are not stored yet.
type unstored struct {
	of     *inflight
	name   string
	source *source

	mu     sync.Mutex
	sizes  []int64 // of the records that are not acknowledged, in their order
	first  uint64  // how many were before them
	closed bool
}

// add waits until a record may be put, and counts it.
func (u *unstored) add(ctx context.Context, size int) error {
	n := min(int64(size), u.of.limit)
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
func (u *unstored) stored(n uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.releaseLocked(min(n-min(n, u.first), uint64(len(u.sizes))))
}

func (u *unstored) releaseLocked(records uint64) {
	var sum int64
	for _, size := range u.sizes[:records] {
		sum += size
	}
	u.sizes = u.sizes[records:]
	u.first += records
	u.source.bytes.Release(sum)
}

// close gives up what is not stored.
func (u *unstored) close() {
	u.mu.Lock()
	u.releaseLocked(uint64(len(u.sizes)))
	u.closed = true
	u.mu.Unlock()
	u.of.mu.Lock()
	defer u.of.mu.Unlock()
	if u.source.sessions--; u.source.sessions == 0 {
		delete(u.of.sources, u.name)
	}
}
