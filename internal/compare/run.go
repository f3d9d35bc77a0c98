package compare

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

const defaultParallel = 8

// Options of a comparison.
type Options struct {
	Rules    Rules
	Parallel int // requests at a time; 0 means defaultParallel
	// HiddenAccounts are accounts that are not compared, because only one side knows them.
	HiddenAccounts []string
	// ShowValues shows values in examples that may be secret, for data that is not.
	ShowValues bool
}

// Run asks both responders for all paths, and compares the answers. It returns an error only if ctx
// ends; requests that fail are in the report.
func Run(ctx context.Context, a, b Responder, paths []string, o Options) (*Report, error) {
	results, err := compareAll(ctx, a, b, paths, o)
	if err != nil {
		return nil, err
	}
	return newReport(results, o.Rules), nil
}

// compareAll compares the answers to all paths, several at a time.
func compareAll(ctx context.Context, a, b Responder, paths []string, o Options) ([]result, error) {
	results := make([]result, len(paths))
	var large sync.Mutex
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(o.Parallel, defaultParallel))
	for i, path := range paths {
		group.Go(func() error {
			results[i] = compareOne(groupCtx, a, b, path, o, &large)
			return groupCtx.Err()
		})
	}
	return results, group.Wait()
}

// largeBytes is the size of two answers from which on they are compared alone: decoded, they take
// some ten times as much memory.
const largeBytes = 8 << 20

func compareOne(ctx context.Context, a, b Responder, path string, o Options, large *sync.Mutex) result {
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
	if len(x.Body)+len(y.Body) > largeBytes {
		large.Lock()
		defer large.Unlock()
	}
	r.found, r.err = Compare(x, y, o.HiddenAccounts)
	for i := range r.found {
		r.found[i].shorten(o.ShowValues)
	}
	return r
}

// maxValueBytes is how much of a value is kept. Thousands of answers may differ.
const maxValueBytes = 4 << 10

// shorten hides secrets and bounds the memory of a difference.
func (d *Difference) shorten(showValues bool) {
	for _, value := range []*string{&d.A, &d.B} {
		if !showValues {
			*value = hideSecrets(d.Field, *value)
		}
		if len(*value) > maxValueBytes {
			*value = strings.ToValidUTF8((*value)[:maxValueBytes], "") + "…"
		}
	}
}
