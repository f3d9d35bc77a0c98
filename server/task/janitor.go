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
	heartbeatCtx, stopHeartbeat := context.WithCancel(context.WithoutCancel(ctx))
	group := errgroup.Group{}
	group.Go(func() error { t.heartbeat(heartbeatCtx); return nil })
	group.Go(func() error { t.runEvery(ctx, t.cfg.AbandonAfter/3, t.sweep); return nil })
	group.Go(func() error { t.runEvery(ctx, time.Hour, t.purge); return nil })
	<-ctx.Done()
	t.close()
	stopHeartbeat()
	return group.Wait()
}

func (t *Tasks) runEvery(ctx context.Context, interval time.Duration, do func(context.Context)) {
	ticker := time.NewTicker(interval)
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

// heartbeat says that the server lives while tasks run, which is longer than the
// server takes some.
func (t *Tasks) heartbeat(ctx context.Context) {
	t.runEvery(ctx, t.cfg.HeartbeatInterval, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		if err := t.cfg.Store.TouchTasks(ctx, t.owner, time.Now()); err != nil && ctx.Err() == nil {
			t.cfg.Log.Warn("the server could not say that its tasks run", "error", err)
			t.resetMissed()
		}
	})
}

// close waits for the tasks that run, for a while.
func (t *Tasks) close() {
	timer := time.AfterFunc(t.cfg.ShutdownTimeout, func() { t.stopRuns(errStopped) })
	defer timer.Stop()
	giveUpTimer := time.AfterFunc(t.cfg.ShutdownTimeout+2*finalStoreTimeout, func() { // though a dispatcher or a database hangs
		t.mu.Lock()
		defer t.mu.Unlock()
		t.abandonRest = true
		t.idle.Broadcast()
	})
	defer giveUpTimer.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for len(t.running) > 0 && !t.abandonRest {
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
		t.resetMissed()
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

// missedHeartbeats is how often in a row a task was found without a new word of its
// server.
type missedHeartbeats struct {
	lastSeen time.Time // by the clock of its server, which may be wrong
	count    int
}

// maxMissedHeartbeats are how many make a task an abandoned one. One would be enough if all
// clocks were right and the database never away.
const maxMissedHeartbeats = 3

func (t *Tasks) abandoned(ctx context.Context) ([]store.TaskRow, error) {
	rows, err := t.cfg.Store.AbandonedTasks(ctx, t.owner, time.Now().Add(-t.cfg.AbandonAfter))
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	missed := map[string]missedHeartbeats{}
	var abandoned []store.TaskRow
	for _, row := range rows {
		if row.Server == t.owner {
			if t.running[row.ID] == nil { // it was stored, and the answer was lost
				abandoned = append(abandoned, row)
			}
			continue
		}
		m := missedHeartbeats{row.LastSeen, 1}
		if previous := t.missed[row.ID]; previous.lastSeen.Equal(row.LastSeen) {
			m.count = previous.count + 1
		}
		if missed[row.ID] = m; m.count >= maxMissedHeartbeats {
			abandoned = append(abandoned, row)
		}
	}
	t.missed = missed
	return abandoned, nil
}

// resetMissed forgets who was silent: the database did not answer, so that nobody could
// be heard.
func (t *Tasks) resetMissed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.missed = nil
}

func (t *Tasks) abandon(ctx context.Context, row store.TaskRow) error {
	task, err := decodeTask(row)
	if err != nil {
		return err
	}
	t.cfg.Log.Warn("a task is ended whose server went away", "task", row.ID, "server", string(row.Server))
	task.abandon("The server that ran this task went away before it ended.")
	return t.storeEnd(ctx, row, task)
}

// storeEnd stores the end of a task that does not run here. Where another server does
// so too, or the task ended by itself after all, nothing is left to do.
func (t *Tasks) storeEnd(ctx context.Context, row store.TaskRow, task Task) error {
	var err error
	if row.Server != t.owner {
		_, err = t.cfg.Store.AcquireTask(ctx, row.ID, row.Server, t.owner)
	}
	if err == nil {
		row.Body, err = task.encodeBody()
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
		n, err := t.cfg.Store.PurgeTasks(ctx, time.Now().Add(-t.cfg.Retention), purgeBatch)
		if err != nil && ctx.Err() == nil {
			t.cfg.Log.Warn("tasks that ended long ago were not forgotten; tried again in an hour", "error", err)
		}
		if err != nil || n < purgeBatch {
			return
		}
	}
}
