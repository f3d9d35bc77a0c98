package task

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/tasks"
)

// Run takes care of the tasks of servers that have ended, and deletes old tasks, until ctx ends. If no other servers share the database, it
// also records that this one is alive. Then no new tasks are accepted. Run returns when the running tasks have
// ended, or soon after ShutdownTimeout.
func (t *Tasks) Run(ctx context.Context) error {
	heartbeatCtx, stopHeartbeat := context.WithCancel(context.WithoutCancel(ctx))
	group := errgroup.Group{}
	if t.cfg.Sharing != nil {
		group.Go(func() error { return t.sweepAtOnce(ctx) })
	} else {
		group.Go(func() error { t.heartbeat(heartbeatCtx); return nil })
		group.Go(func() error { t.runEvery(ctx, t.cfg.AbandonAfter/3, t.sweep); return nil })
	}
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

// heartbeat records that the server is alive while tasks run. Tasks can run longer than the
// server accepts new ones.
func (t *Tasks) heartbeat(ctx context.Context) {
	t.runEvery(ctx, t.cfg.HeartbeatInterval, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		if err := t.cfg.Store.TouchTasks(ctx, t.owner, time.Now()); err != nil && ctx.Err() == nil {
			t.cfg.Log.Warn("cannot record that tasks are running", "error", err)
			t.resetMissed()
		}
	})
}

// close waits for running tasks, at most ShutdownTimeout.
func (t *Tasks) close() {
	timer := time.AfterFunc(t.cfg.ShutdownTimeout, func() { t.stopRuns(errStopped) })
	defer timer.Stop()
	giveUpTimer := time.AfterFunc(t.cfg.ShutdownTimeout+2*finalStoreTimeout, func() { // even if a dispatcher or a database hangs
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
		t.cfg.Log.Warn("tasks are still running at shutdown, another server will end them", "tasks", len(t.running))
	}
}

// sweep ends the tasks of lost servers, and tasks of this server that are not running.
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
		t.cfg.Log.Warn("cannot end abandoned tasks, retrying", "error", err)
	}
}

// missedHeartbeats counts how often in a row a task was found without a new heartbeat of its
// server.
type missedHeartbeats struct {
	lastSeen time.Time // by the clock of its server, which can be wrong
	count    int
}

// maxMissedHeartbeats is the count at which a task is abandoned. It is more than one because
// clocks can differ and the database can be unavailable.
const maxMissedHeartbeats = 3

func (t *Tasks) abandoned(ctx context.Context) ([]tasks.Task, error) {
	rows, err := t.cfg.Store.AbandonedTasks(ctx, t.owner, time.Now().Add(-t.cfg.AbandonAfter))
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	missed := map[string]missedHeartbeats{}
	var abandoned []tasks.Task
	for _, row := range rows {
		if row.Server == t.owner {
			if t.running[row.ID] == nil { // it was stored, but the response was lost
				abandoned = append(abandoned, row)
			}
			continue
		}
		m := missedHeartbeats{row.LastSeen, 1}
		if previous := t.missed[row.ID]; previous.lastSeen.Equal(row.LastSeen) {
			m.count = previous.count + 1
		}
		missed[row.ID] = m
		if m.count >= maxMissedHeartbeats {
			abandoned = append(abandoned, row)
		}
	}
	t.missed = missed
	return abandoned, nil
}

// resetMissed resets the counts after the database was unavailable, because no server could
// record heartbeats.
func (t *Tasks) resetMissed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.missed = nil
}

func (t *Tasks) abandon(ctx context.Context, row tasks.Task) error {
	task, err := decodeTask(row)
	if err != nil {
		return err
	}
	if row.Server == t.owner {
		t.cfg.Log.Warn("ending a task that was not begun, because the database stored it too late", "task", row.ID)
		task.abandon("The database stored this task so late that the server did not begin it.")
	} else {
		t.cfg.Log.Warn("ending task of a lost server", "task", row.ID, "server", string(row.Server))
		task.abandon("The server that ran this task was lost before the task ended.")
	}
	return t.storeEnd(ctx, row, task)
}

// storeEnd stores the end of a task that does not run here. If another server does the same,
// or the task ended by itself, it does nothing.
func (t *Tasks) storeEnd(ctx context.Context, row tasks.Task, task Task) error {
	var err error
	if row.Server != t.owner {
		_, err = t.cfg.Store.AcquireTask(ctx, row.ID, row.Server, t.owner)
	}
	if err == nil {
		row.Body, err = task.encodeBody()
	}
	if err == nil {
		row.Server = t.owner
		row.State = task.State
		row.LastSeen = time.Now()
		row.Ended = row.LastSeen
		err = t.cfg.Store.SaveTask(ctx, row)
	}
	if vedette.KindOf(err) == vedette.Conflict {
		return nil
	}
	return err
}

// purgeBatch is how many tasks are deleted at a time.
const purgeBatch = 100

// purge deletes tasks that ended more than Retention ago.
func (t *Tasks) purge(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		n, err := t.cfg.Store.PurgeTasks(ctx, time.Now().Add(-t.cfg.Retention), purgeBatch)
		if err != nil && ctx.Err() == nil {
			t.cfg.Log.Warn("cannot delete old tasks, retrying in an hour", "error", err)
		}
		if err != nil || n < purgeBatch {
			return
		}
	}
}
