package infrastructure

import (
	"context"
	"errors"
	"fmt"

	"github.com/vedette-io/vedette/server/store/read"
)

// The memory of rows while they are read. Several small reads go on at a time, but only one large
// one, so that applications with hundreds of thousands of objects cannot fill the memory together.
const (
	maxSmall   = 6
	smallBytes = 16 << 20 // of each
	largeBytes = 128 << 20
)

// withMemory calls load, whose reads of rows are limited together, and returns how many bytes the
// rows take. If they do not fit into the memory of a small read, it calls load again as a large one.
func (r *Reader) withMemory(ctx context.Context, load func(context.Context) error) (int64, error) {
	used, err := readWithin(ctx, r.small, smallBytes, load)
	if errors.Is(err, read.ErrRowBudget) {
		used, err = readWithin(ctx, r.large, largeBytes, load)
	}
	return used, err
}

// readWithin waits until permits has room, and calls load with a budget.
func readWithin(ctx context.Context, permits chan struct{}, bytes int64, load func(context.Context) error) (int64, error) {
	select {
	case permits <- struct{}{}:
		defer func() { <-permits }()
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for other reads of applications: %w", context.Cause(ctx))
	}
	ctx, budget := read.WithRowBudget(ctx, bytes)
	err := load(ctx)
	return budget.Used(), err
}
