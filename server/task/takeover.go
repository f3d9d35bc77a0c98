package task

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/tasks"
)

// Why a task goes on at another server, in its history.
const (
	becauseLost    = "The server that ran this task was lost. Server %s goes on with it"
	becauseStopped = "The server that ran this task is stopping. Server %s goes on with it"
)

// ServerEnded says that a server has ended, whose tasks are to be taken care of. It does not block.
func (t *Tasks) ServerEnded(vedette.ServerID) {
	select {
	case t.ended <- struct{}{}:
	default:
	}
}

// sweepAtOnce sweeps when a server has ended, and now and then, until ctx ends.
func (t *Tasks) sweepAtOnce(ctx context.Context) error {
	ticker := time.NewTicker(t.cfg.AbandonAfter / maxMissedHeartbeats)
	defer ticker.Stop()
	for {
		t.sweepEnded(ctx)
		select {
		case <-t.ended:
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// maxSweeps is how many tasks are taken care of at the same time.
const maxSweeps = 8

// sweepEnded goes on with the tasks of servers that have ended, or ends them.
func (t *Tasks) sweepEnded(parent context.Context) {
	ctx, cancel := context.WithTimeout(parent, storeTimeout)
	defer cancel()
	owners, err := t.cfg.Store.TaskOwners(ctx)
	if err != nil {
		if ctx.Err() == nil {
			t.cfg.Log.Warn("cannot read which tasks run, retrying", "error", err)
		}
		t.resetMissed()
		t.retrySweep(parent)
		return
	}
	t.dropStale(owners)
	var group errgroup.Group
	group.SetLimit(maxSweeps)
	for id, owner := range t.lost(ctx, owners) {
		group.Go(func() error {
			if err := t.takeCare(ctx, id, owner); err != nil && ctx.Err() == nil {
				t.cfg.Log.Warn("cannot take care of the task of a server that has ended, retrying", "task", id, "error", err)
				t.retrySweep(parent)
			}
			return nil
		})
	}
	_ = group.Wait() // no error is returned
}

// sweepRetry is when tasks are looked at again of which one could not be taken care of.
const sweepRetry = time.Second

func (t *Tasks) retrySweep(ctx context.Context) {
	if ctx.Err() == nil {
		time.AfterFunc(sweepRetry, func() { t.ServerEnded("") })
	}
}

// lost returns the tasks of processes that have ended, and those of this one that do not run.
func (t *Tasks) lost(ctx context.Context, owners map[string]vedette.ServerID) map[string]vedette.ServerID {
	alive := map[vedette.ServerID]bool{}
	lost := map[string]vedette.ServerID{}
	for id, owner := range owners {
		if owner == t.owner {
			if t.run(id) == nil {
				lost[id] = owner
			}
			continue
		}
		isAlive, known := alive[owner]
		if !known {
			isAlive = t.isAlive(ctx, owner)
			alive[owner] = isAlive
		}
		if !isAlive {
			lost[id] = owner
		}
	}
	return lost
}

// dropStale drops the copies of tasks that have ended or moved while their streams were broken, or whose servers had time to make
// another copy.
func (t *Tasks) dropStale(owners map[string]vedette.ServerID) {
	for _, c := range t.heldCopies() {
		c.mu.Lock()
		isStale := !c.closed.IsZero() && (c.head == nil || owners[c.head.ID] != c.head.Owner || time.Since(c.closed) > t.cfg.AbandonAfter)
		c.mu.Unlock()
		if isStale {
			c.drop()
		}
	}
}

func (t *Tasks) heldCopies() (all []*HeldCopy) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.copies {
		all = append(all, c)
	}
	return all
}

// takeCare goes on with a task whose process has ended, leaves it to the server that has its copy, or ends it.
func (t *Tasks) takeCare(ctx context.Context, id string, owner vedette.ServerID) error {
	row, err := t.cfg.Store.Task(ctx, id)
	if vedette.KindOf(err) == vedette.NotFound || err == nil && (row.State != tasks.Running || row.Server != owner) {
		return nil
	}
	if err != nil {
		return err
	}
	if owner == t.owner { // it was stored, but the response was lost
		if t.run(id) != nil {
			return nil
		}
		return t.abandon(ctx, row)
	}
	named, err := standbyOf(row)
	if err != nil {
		return err
	}
	if c := t.copyOf(id, owner, named); c != nil {
		c.taking.Lock()
		defer c.taking.Unlock()
		return t.continueCopy(ctx, c, becauseLost)
	}
	if named != nil && named.Server != t.cfg.Server && t.mayHaveCopy(id, named.Server) {
		t.retrySweep(ctx)
		return nil
	}
	return t.abandon(ctx, row)
}

// copyOf returns the copy of a task that its row names; nil if it is not here, or not whole.
func (t *Tasks) copyOf(id string, owner vedette.ServerID, named *standby) *HeldCopy {
	if named == nil {
		return nil
	}
	for _, c := range t.heldCopies() {
		c.mu.Lock()
		isIt := c.head != nil && c.point != nil && !c.isTaken && c.head.ID == id && c.head.Owner == owner && c.head.Copy == named.Copy
		c.mu.Unlock()
		if isIt {
			return c
		}
	}
	return nil
}

// maxLeft is how often a task is left to the server that has its copy. That takes it over within a moment if it runs.
const maxLeft = 10

// mayHaveCopy reports whether a task is to be left to the server of its copy.
func (t *Tasks) mayHaveCopy(id string, server vedette.ServerID) bool {
	runs := false
	for _, candidate := range t.cfg.Sharing.Candidates() {
		runs = runs || candidate == server
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.missed == nil {
		t.missed = map[string]missedHeartbeats{}
	}
	m := t.missed[id]
	m.count++
	t.missed[id] = m
	if !runs || m.count > maxLeft {
		delete(t.missed, id)
		return false
	}
	return true
}

// continueHandedOver goes on with a task whose server stops, and asks for that. The caller holds taking.
func (t *Tasks) continueHandedOver(ctx context.Context, c *HeldCopy) error {
	return t.continueCopy(ctx, c, becauseStopped)
}

// continueCopy acquires a task and goes on with it. The caller holds taking.
func (t *Tasks) continueCopy(ctx context.Context, c *HeldCopy, because string) error {
	taken := c.take()
	if taken == nil {
		return nil
	}
	r, err := t.newContinuedRun(taken, because) //nolint:contextcheck // a task outlives the call
	if err != nil {
		taken.grant.Release()
		return fmt.Errorf("read the copy of task %s: %w", taken.head.ID, err)
	}
	if err := t.registerContinued(r); err != nil {
		c.putBack(taken)
		return err
	}
	acquiring, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout) // an acquired task must run
	defer cancel()
	_, err = t.cfg.Store.AcquireTask(acquiring, r.id, taken.head.Owner, t.owner)
	if vedette.KindOf(err) == vedette.Unavailable { // it may be acquired already
		_, err = t.cfg.Store.AcquireTask(acquiring, r.id, taken.head.Owner, t.owner)
		if row, readErr := t.cfg.Store.Task(acquiring, r.id); readErr == nil && row.Server == t.owner && row.State == tasks.Running {
			err = nil
		}
	}
	if vedette.KindOf(err) == vedette.Conflict { // another server was faster, or the task has ended
		t.unregister(r)
		taken.grant.Release()
		return nil
	}
	if err != nil {
		t.unregister(r)
		c.putBack(taken)
		return err
	}
	t.cfg.Log.Warn("going on with the task of another server", "task", r.id, "server", string(taken.head.Owner), "operation", taken.point.Op+1,
		"steps", len(taken.steps))
	t.start(r) //nolint:contextcheck // a task outlives the call
	return nil
}

// newContinuedRun returns a run that goes on where a copy ends.
func (t *Tasks) newContinuedRun(c *takenCopy, because string) (*taskRun, error) {
	previous, err := decodeTask(tasks.Task{ID: c.head.ID, RequestID: c.head.RequestID, Server: t.owner, User: c.head.User,
		State: tasks.Running, Body: c.point.Body, Created: c.head.Started})
	if err != nil {
		return nil, err
	}
	ops := make([]validatedOp, c.head.Ops)
	for i := range c.ops {
		f := &c.ops[i]
		if f.Op < c.point.Op || f.Op >= len(ops) {
			continue
		}
		if ops[f.Op], err = f.operation(t.cfg.Sharing); err != nil {
			return nil, err
		}
	}
	for i := c.point.Op; i < len(ops); i++ {
		if ops[i].operation == nil {
			return nil, vedette.Errorf(vedette.Invalid, "operation %d is missing", i+1)
		}
	}
	if c.point.Op < len(ops) { // the steps belong to it
		for i := range c.steps {
			ops[c.point.Op].bytes += c.steps[i].bytes()
		}
	}
	o := Options{RequestID: c.head.RequestID, Application: c.head.Application, User: c.head.User, Source: c.head.Source,
		Requester: vedette.Requester(c.head.Requester)}
	m := &memory{limit: t.cfg.MaxCopyBytes / 2, grant: c.grant, free: taskBytes}
	r := t.newRun(context.Background(), c.head.ID, ops, o, m)
	r.first, r.point = c.point.Op, c.point
	r.journal = journal{run: c.head.Run, began: c.head.Began, op: c.point.Op, steps: c.steps, used: make([]bool, len(c.steps))}
	_, server := ownerServer(t.owner)
	r.task = previous
	r.task.History = append(r.task.History, HistoryEntry{orchestration, fmt.Sprintf(because, server)})
	body, err := r.task.encodeBody()
	r.point.Body = body
	r.isContinued = true
	return r, err
}

// registerContinued is register without the limit on tasks: the memory is reserved already.
func (t *Tasks) registerContinued(r *taskRun) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return errClosed()
	case t.running[r.id] != nil:
		return vedette.Errorf(vedette.Conflict, "task %s runs here already", r.id)
	}
	t.running[r.id] = r
	return nil
}

// standbyOf returns the copy that a row names; nil if there is none.
func standbyOf(row tasks.Task) (*standby, error) {
	b, err := decodeBody(row)
	return b.Standby, err
}
