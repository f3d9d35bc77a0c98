package task

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// Run says that this server lives, ends tasks whose server does not, and
// forgets those that ended long ago, until ctx ends. Then it takes no more
// tasks and returns when those that run have ended, or have been left, which
// takes little longer than the configured patience.
func (t *Tasks) Run(ctx context.Context) error {
	alive, die := context.WithCancel(context.WithoutCancel(ctx))
	group := errgroup.Group{}
	group.Go(func() error { t.beat(alive); return nil })
	group.Go(func() error { t.every(ctx, t.cfg.AbandonAfter/3, t.sweep); return nil })
	group.Go(func() error { t.every(ctx, time.Hour, t.purge); return nil })
	<-ctx.Done()
	t.close()
	die()
	return group.Wait()
}

func (t *Tasks) every(ctx context.Context, pause time.Duration, do func(context.Context)) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		do(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// beat says that the server lives while tasks run, which is longer than the
// server takes some.
func (t *Tasks) beat(ctx context.Context) {
	t.every(ctx, t.cfg.Beat, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		if err := t.cfg.Store.TouchTasks(ctx, t.owner, time.Now()); err != nil && ctx.Err() == nil {
			t.cfg.Log.Warn("the server could not say that its tasks run", "error", err)
			t.deaf()
		}
	})
}

// close waits for the tasks that run, for a while.
func (t *Tasks) close() {
	timer := time.AfterFunc(t.cfg.Patience, func() { t.stop(errStopped) })
	defer timer.Stop()
	given := time.AfterFunc(t.cfg.Patience+2*lastStore, func() { // though a dispatcher or a database hangs
		t.mu.Lock()
		defer t.mu.Unlock()
		t.left = true
		t.idle.Broadcast()
	})
	defer given.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for len(t.running) > 0 && !t.left {
		t.idle.Wait()
	}
	if len(t.running) > 0 {
		t.cfg.Log.Warn("tasks were left running; another server will end them", "tasks", len(t.running))
	}
}

// sweep ends the tasks of servers that went away, and what counts as this
// server's though it does not run.
func (t *Tasks) sweep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	abandoned, err := t.abandoned(ctx)
	if err != nil {
		t.deaf()
	}
	for _, row := range abandoned {
		if err == nil {
			err = t.abandon(ctx, row)
		}
	}
	if err != nil && ctx.Err() == nil {
		t.cfg.Log.Warn("abandoned tasks were not ended; tried again", "error", err)
	}
}

// silence is how often in a row a task was found without a new word of its
// server.
type silence struct {
	seen  time.Time // by the clock of its server, which may be wrong
	times int
}

// silences are how many make a task an abandoned one. One would be enough if all
// clocks were right and the database never away.
const silences = 3

func (t *Tasks) abandoned(ctx context.Context) ([]store.TaskRow, error) {
	rows, err := t.cfg.Store.AbandonedTasks(ctx, t.owner, time.Now().Add(-t.cfg.AbandonAfter))
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	silent := map[string]silence{}
	var abandoned []store.TaskRow
	for _, row := range rows {
		if row.Server == t.owner {
			if t.running[row.ID] == nil { // it was stored, and the answer was lost
				abandoned = append(abandoned, row)
			}
			continue
		}
		s := silence{row.LastSeen, 1}
		if before := t.silent[row.ID]; before.seen.Equal(row.LastSeen) {
			s.times = before.times + 1
		}
		if silent[row.ID] = s; s.times >= silences {
			abandoned = append(abandoned, row)
		}
	}
	t.silent = silent
	return abandoned, nil
}

// deaf forgets who was silent: the database did not answer, so that nobody could
// be heard.
func (t *Tasks) deaf() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.silent = nil
}

func (t *Tasks) abandon(ctx context.Context, row store.TaskRow) error {
	task, err := taskOf(row)
	if err != nil {
		return err
	}
	t.cfg.Log.Warn("a task is ended whose server went away", "task", row.ID, "server", string(row.Server))
	task.abandon("The server that ran this task went away before it ended.")
	return t.end(ctx, row, task)
}

// end stores the end of a task that does not run here. Where another server does
// so too, or the task ended by itself after all, nothing is left to do.
func (t *Tasks) end(ctx context.Context, row store.TaskRow, task Task) error {
	var err error
	if row.Server != t.owner {
		_, err = t.cfg.Store.AcquireTask(ctx, row.ID, row.Server, t.owner)
	}
	if err == nil {
		row.Body, err = task.body()
	}
	if err == nil {
		row.Server, row.State, row.LastSeen = t.owner, task.State, time.Now()
		row.Ended = row.LastSeen
		err = t.cfg.Store.SaveTask(ctx, row)
	}
	if vedette.KindOf(err) == vedette.Conflict {
		return nil
	}
	return err
}

// purgeBatch is how many tasks are forgotten at a time.
const purgeBatch = 100

// purge forgets tasks that ended long ago.
func (t *Tasks) purge(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		n, err := t.cfg.Store.PurgeTasks(ctx, time.Now().Add(-t.cfg.Keep), purgeBatch)
		if err != nil && ctx.Err() == nil {
			t.cfg.Log.Warn("tasks that ended long ago were not forgotten; tried again in an hour", "error", err)
		}
		if err != nil || n < purgeBatch {
			return
		}
	}
}
