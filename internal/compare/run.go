package compare

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Options of a comparison.
type Options struct {
	Rules    Rules
	Parallel int // requests at a time; 0 means 8
	// ShowValues shows values in examples that may be secret, for data that is not.
	ShowValues bool
}

// Run asks both sources for all paths, and compares the answers. It returns an error only if ctx
// ends; requests that fail are in the report.
func Run(ctx context.Context, a, b Source, paths []string, o Options) (*Report, error) {
	results := make([]result, len(paths))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(max(o.Parallel, 0))
	if o.Parallel <= 0 {
		group.SetLimit(8)
	}
	for i, path := range paths {
		group.Go(func() error {
			results[i] = compareOne(groupCtx, a, b, path, o)
			return groupCtx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return newReport(results, o.Rules), nil
}

func compareOne(ctx context.Context, a, b Source, path string, o Options) result {
	r := result{path: path}
	x, err := a.Answer(ctx, path)
	if err != nil {
		r.err = err
		return r
	}
	y, err := b.Answer(ctx, path)
	if err != nil {
		r.err = err
		return r
	}
	r.found, r.err = Compare(x, y)
	return r
}
