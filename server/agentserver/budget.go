package agentserver

import (
	"context"
	"math"
	"sync"

	"github.com/vedette-io/vedette/internal/fair"
)

// recordBudget limits the bytes of records of one source that wait for the database, so
// that a host with many changes leaves room for others in memory and in the queue of
// the database. Sources do not wait for each other here: what all have together is limited by ingest.
type recordBudget struct{ line *fair.Line }

// newRecordBudget returns a budget of so many bytes for each source.
func newRecordBudget(limit int64) *recordBudget {
	return &recordBudget{fair.New(fair.Config{Capacity: math.MaxInt64, Share: max(limit, 1)})}
}

// open returns the accounting of a session. The caller must close it.
func (f *recordBudget) open(source string) *unstoredRecords {
	return &unstoredRecords{budget: f, source: source}
}

// unstoredRecords are the records of a session that are not stored yet.
type unstoredRecords struct {
	budget *recordBudget
	source string // as sourceOf returns it

	mu     sync.Mutex
	held   fair.Grant // of sizes
	sizes  []int64    // of the unacknowledged records, in order
	first  uint64     // the number of records before sizes
	closed bool
}

// add waits until the budget has room for a record, and counts it.
func (u *unstoredRecords) add(ctx context.Context, size int) error {
	grant, err := u.budget.line.Acquire(ctx, u.source, int64(size))
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		grant.Release()
		return errSessionEnded
	}
	u.sizes = append(u.sizes, grant.Units())
	u.held.Join(grant)
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
	u.held.Shrink(sum)
}

// close releases everything that is not stored.
func (u *unstoredRecords) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.releaseLocked(uint64(len(u.sizes)))
	u.closed = true
}
