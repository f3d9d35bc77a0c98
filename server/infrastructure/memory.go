package infrastructure

import (
	"context"
	"errors"
	"fmt"

	"github.com/vedette-io/vedette/server/store"
)

// The memory of rows while they are read. Several small reads go on at a time, but only one large
// one, so that applications with hundreds of thousands of objects cannot fill the memory together.
const (
	maxSmall   = 6
	smallBytes = 16 << 20 // of each
	largeBytes = 128 << 20
)

// withMemory calls read, whose reads of rows are limited together, and returns how many bytes the
// rows take. If they do not fit into the memory of a small read, it calls read again as a large one.
func (r *Reader) withMemory(ctx context.Context, read func(context.Context) error) (int64, error) {
	used, err := readWithin(ctx, r.small, smallBytes, read)
	if errors.Is(err, store.ErrRowBudget) {
		used, err = readWithin(ctx, r.large, largeBytes, read)
	}
	return used, err
}

// readWithin waits until slots has room, and calls read with a budget.
func readWithin(ctx context.Context, slots chan struct{}, bytes int64, read func(context.Context) error) (int64, error) {
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for other reads of applications: %w", context.Cause(ctx))
	}
	ctx, budget := store.WithRowBudget(ctx, bytes)
	err := read(ctx)
	return budget.Used(), err
}
