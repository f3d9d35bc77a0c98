package watch

import (
	"context"
	"sync"
	"time"
)

// groups starts accounts in groups, with a pause between them.
type groups struct {
	size  int
	delay time.Duration

	mu      sync.Mutex
	began   time.Time // when the current group began
	started int       // accounts of the current group
}

// join adds an account to the current group. If the group is full, it returns how long the account
// must wait before it tries again; 0 otherwise. Accounts that wait take no place, so that one that
// is removed meanwhile delays nobody.
func (g *groups) join(now time.Time) time.Duration {
	if g.size <= 0 || g.delay <= 0 {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	end := g.began.Add(g.delay)
	if !now.Before(end) {
		g.began, g.started = now, 0
	}
	if g.started >= g.size {
		return end.Sub(now)
	}
	g.started++
	return 0
}

// awaitGroup waits until the account may start. An account with marks does not wait, because it
// lists nothing: it takes over from another agent, or returns.
func (w *Watcher) awaitGroup(ctx context.Context, hasMarks bool) error {
	if hasMarks {
		return nil
	}
	for {
		pause := w.cfg.Limiter.groups.join(time.Now())
		if err := w.queueStatus.setGroup(ctx, w, pause > 0); err != nil || pause == 0 {
			return err
		}
		w.sleep(ctx, pause)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}
