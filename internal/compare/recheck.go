package compare

import (
	"context"
	"time"
)

// Recheck asks again, after a pause, for what differs in a report or failed, and returns the report
// with the new answers. It removes differences that came from a change between two requests, or that
// one server showed later than the other.
func Recheck(ctx context.Context, a, b Responder, r *Report, pause time.Duration, o Options) (*Report, error) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
	}
	again := map[string]bool{}
	var paths []string
	for _, path := range r.Differing() {
		again[path] = true
		paths = append(paths, path)
	}
	results, err := compareAll(ctx, a, b, paths, o)
	if err != nil {
		return nil, err
	}
	for _, result := range r.results {
		if !again[result.path] {
			results = append(results, result)
		}
	}
	return newReport(results, o.Rules), nil
}
