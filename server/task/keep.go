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
		if err := t.cfg.Store.SeeTasks(ctx, t.owner, time.Now()); err != nil && ctx.Err() == nil {
			t.cfg.Log.Warn("the server could not say that its tasks run", "error", err)
			t.quiet(time.Now())
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

// quiet notes that the database did not answer. Other servers may not have been
// heard for that reason.
func (t *Tasks) quiet(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deaf = at
}

// sweep ends the tasks of servers that went away. After the database was away
// others get the time to be heard again.
func (t *Tasks) sweep(ctx context.Context) {
	t.mu.Lock()
	deaf := t.deaf
	t.mu.Unlock()
	if time.Since(deaf) < t.cfg.AbandonAfter {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	rows, err := t.cfg.Store.AbandonedTasks(ctx, t.owner, time.Now().Add(-t.cfg.AbandonAfter))
	if err == nil {
		var mine []store.TaskRow
		mine, err = t.strays(ctx)
		rows = append(rows, mine...)
	}
	for _, row := range rows {
		if err == nil {
			err = t.abandon(ctx, row)
		}
	}
	if err != nil && ctx.Err() == nil {
		t.cfg.Log.Warn("abandoned tasks were not ended; tried again", "error", err)
		if vedette.KindOf(err) == vedette.Unavailable {
			t.quiet(time.Now())
		}
	}
}

// strays are tasks that count as this server's and that it does not run: what
// was stored though the database said nothing of it.
func (t *Tasks) strays(ctx context.Context) ([]store.TaskRow, error) {
	rows, err := t.cfg.Store.RunningTasks(ctx, mostListed)
	if err != nil {
		return nil, err
	}
	var strays []store.TaskRow
	for _, row := range rows {
		t.mu.Lock()
		runs := t.running[row.ID] != nil
		t.mu.Unlock()
		if runs || row.Server != t.owner {
			continue
		}
		// One that has ended since it was listed is not running any more.
		if row, err = t.cfg.Store.Task(ctx, row.ID); err != nil {
			return nil, err
		}
		if row.State == store.TaskRunning {
			strays = append(strays, row)
		}
	}
	return strays, nil
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

// end stores the end of a task that does not run here. Of several servers that
// want to, one does.
func (t *Tasks) end(ctx context.Context, row store.TaskRow, task Task) error {
	if row.Server != t.owner {
		taken, err := t.cfg.Store.TakeTask(ctx, row.ID, row.Server, t.owner)
		if err != nil || !taken {
			return err
		}
	}
	var err error
	if row.Body, err = task.body(); err != nil {
		return err
	}
	row.Server, row.State, row.Seen = t.owner, task.State, time.Now()
	row.Ended = row.Seen
	return t.cfg.Store.SaveTask(ctx, row)
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
