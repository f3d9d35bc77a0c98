package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/registry"
)

// How long an outcome waits for the database. An object that is not stored by then comes
// with its feed, and the end is recorded when the database is available again.
const (
	maxWriteWait        = 2 * time.Second
	maxWriteThroughWait = maxWriteWait * 3 / 4 // shorter, to leave time for the history
	// maxFeedWait is how long an outcome waits for what the feed of another agent reports, and up to the deadline of its operation. Most
	// feeds report it within milliseconds, but an agent that has just got an account may have to read a whole list first.
	maxFeedWait = 10 * time.Second
)

// needsWriteThrough reports whether the outcome is written through. Objects that were
// only read come with their feed, except that a recache is requested to store the
// object. A dry run has nothing to store.
func (f *inflight) needsWriteThrough() bool {
	_, recache := f.op.Args.(vedette.RecacheArgs)
	return recache || f.op.Changes()
}

// prioritize gives the coming write-through priority over commits of the account, until
// end is called.
func (d *Dispatcher) prioritize(f *inflight) (end func()) {
	if !f.needsWriteThrough() {
		return func() {}
	}
	return d.store.Prioritize(f.op.Account)
}

// writeThrough stores the written objects and removes those that are gone before the
// caller receives the outcome, so that the caller reads its own writes. Commits of the
// account have given way since the operation was accepted. It reports whether the end
// of the operation was recorded in the same transaction, and whether readers see what there is to see.
func (d *Dispatcher) writeThrough(ctx context.Context, f *inflight, out *vedette.Outcome, end *history.Operation) (ended, isReadable bool) {
	if !f.needsWriteThrough() {
		return false, true
	}
	defer d.makeKnown(ctx)
	defer func() {
		if isReadable {
			out.Absent, out.Awaited = nil, nil // nobody else needs them
		}
	}()
	wait := newEffectWait(f.op.Deadline)
	absent, awaited := out.Absent, out.Awaited
	switch {
	case out.CacheObject != nil:
		o := out.CacheObject
		return d.writeInTerm(ctx, f, wait, storedEffect{
			write: func(ctx context.Context, term vedette.Term) ([]commit.Change, bool, error) {
				return d.store.WriteThrough(ctx, f.op.Account, term, *o, end)
			},
			isStored: func(ctx context.Context) (bool, error) {
				return d.store.HasReached(ctx, f.op.Account, vedette.ObjectVersion{Key: o.Key, Version: o.ResourceVersion})
			},
		})
	case awaited != nil:
		return d.writeInTerm(ctx, f, wait, storedEffect{
			isStored: func(ctx context.Context) (bool, error) { return d.store.HasReached(ctx, f.op.Account, *awaited) },
		})
	}
	if name := objectOf(f.op.Args).name; absent != nil && (name == "" || absent.Key.Name != name) {
		absent = nil // it says nothing of this operation's object
	}
	args, isDelete := f.op.Args.(vedette.DeleteArgs)
	if !isDelete || args.NoWait || out.State != vedette.Done || len(out.Keys) == 0 || len(out.UIDs) != len(out.Keys) {
		if absent == nil {
			return false, true
		}
		return d.writeInTerm(ctx, f, wait, d.removal(f, *absent, "", end))
	}
	isReadable = true
	for i, key := range out.Keys {
		if out.UIDs[i] == f.known.uid && key != f.known.key {
			continue // the cluster resolved the kind to another kind than keyOf: the known object was not deleted
		}
		var endRow *history.Operation // recorded with the last object, so that no reader sees the end before
		if i == len(out.Keys)-1 {
			endRow = end
		}
		gone := vedette.Absence{Key: key}
		if absent != nil && absent.Key == key {
			gone = *absent
		}
		isRemoved := false
		ended, isRemoved = d.writeInTerm(ctx, f, wait, d.removal(f, gone, out.UIDs[i], endRow))
		isReadable = isReadable && isRemoved
		if i+1 < len(out.Keys) && wait.isOver(func() bool { return isRemoved }) {
			return false, false // their feeds report the others
		}
	}
	return ended, isReadable
}

// removal is the effect of the deletion of one object. The uid is empty if the operation found none, and the version of gone if it is not
// known up to which one the object is gone.
func (d *Dispatcher) removal(f *inflight, gone vedette.Absence, uid string, end *history.Operation) storedEffect {
	return storedEffect{
		write: func(ctx context.Context, term vedette.Term) ([]commit.Change, bool, error) {
			if gone.Version == "" {
				return d.store.RemoveThrough(ctx, f.op.Account, term, gone.Key, uid, end)
			}
			return d.store.RemoveAbsent(ctx, f.op.Account, term, gone, uid, end)
		},
		isStored: func(ctx context.Context) (bool, error) {
			return d.store.HasRemoved(ctx, f.op.Account, gone, uid, uid != "" && uid == f.known.uid)
		},
	}
}

// maxKnownWait bounds makeKnown. A server that does not answer uses its caches for a shorter time.
const maxKnownWait = 3 * time.Second

// makeKnown waits until the other servers know what was written, so that the caller can read it there, too.
func (d *Dispatcher) makeKnown(ctx context.Context) {
	if d.known == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxKnownWait)
	defer cancel()
	if err := d.known(ctx); err != nil {
		d.log.WarnContext(ctx, "other servers may not know yet what an operation has written", "error", err)
	}
}

// storedEffect is what an operation has changed of one object. If the account is written by another server, isStored is asked until
// that one has stored it.
type storedEffect struct {
	write    func(context.Context, vedette.Term) ([]commit.Change, bool, error) // nil if there is nothing to write
	isStored func(context.Context) (bool, error)
}

// effectWait is how long all effects of an operation are waited for.
type effectWait struct {
	unheld        time.Time // until when, while no agent has the account
	held          time.Time // until when, while an agent has it that may report the effect
	last          time.Time // when an effect was last tried
	hasStoodStill bool
}

func newEffectWait(deadline time.Time) *effectWait {
	now := time.Now()
	w := &effectWait{unheld: now.Add(maxWriteThroughWait), held: now.Add(maxFeedWait), last: now}
	if deadline.Before(w.held) {
		w.held = deadline
	}
	return w
}

// begin begins a try. The process may have stood still since the last one: what has passed then was nobody's time, and is waited for
// once more.
func (w *effectWait) begin() {
	now := time.Now()
	if w.isPause(now) {
		w.hasStoodStill = true
		w.unheld = now.Add(maxWriteThroughWait)
	}
	w.last = now
}

// isPause reports whether the process has stood still for the first time: no try takes that long.
func (w *effectWait) isPause(now time.Time) bool {
	return !w.hasStoodStill && now.Sub(w.last) >= 2*maxWriteThroughWait
}

// isOver reports whether an account is not waited for any more.
func (w *effectWait) isOver(isHeld func() bool) bool {
	now := time.Now()
	return !now.Before(w.unheld) && (!now.Before(w.held) || !isHeld())
}

// The time between two questions whether another server has stored an effect: a feed reports most changes within some milliseconds.
const (
	minStoredPoll = 10 * time.Millisecond
	maxStoredPoll = 160 * time.Millisecond
)

// writeInTerm writes in the term of the account's cacher and waits for a term if there
// is none: an agent sends outcomes first on a new connection, before it is assigned its
// accounts, and an outcome may arrive just before a connection is lost. If the account has moved to an
// agent of another server meanwhile, that agent's feed reports the effect, which may be later than the outcome. The results are those of
// writeThrough.
func (d *Dispatcher) writeInTerm(ctx context.Context, f *inflight, w *effectWait, e storedEffect) (ended, isReadable bool) {
	for poll := minStoredPoll; ; poll = min(2*poll, maxStoredPoll) {
		changed := d.nextChange() // before Cacher, so that no change is missed
		w.begin()
		ended, isReadable, err := d.tryEffect(ctx, f, e)
		switch {
		case isReadable:
			return ended, true
		case !errors.Is(err, registry.ErrTerm) && w.isPause(time.Now()):
			continue
		case !errors.Is(err, registry.ErrTerm) || w.isOver(func() bool { return d.isHeld(ctx, f.op.Account) }):
			d.log.WarnContext(ctx, "write-through failed; the feed will report the object", "operation", f.op.ID, "account", f.op.Account,
				"error", err)
			return false, false
		}
		timer := time.NewTimer(poll)
		select {
		case <-d.changesCtx.Done(): // this server stops
			w.held = time.Time{}
			<-timer.C
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// tryEffect writes an effect, or asks whether another server has stored it. It returns registry.ErrTerm if neither is so.
func (d *Dispatcher) tryEffect(ctx context.Context, f *inflight, e storedEffect) (ended, isReadable bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxWriteThroughWait)
	defer cancel()
	err = registry.ErrTerm
	if member, term := d.assignments.Cacher(f.op.Account); member != nil && e.write != nil {
		var changes []commit.Change
		changes, ended, err = e.write(ctx, term)
		d.publisher.Publish(changes)
	}
	if errors.Is(err, registry.ErrTerm) {
		// Of an account that was removed, nothing can be read.
		if isStored, unknown := e.isStored(ctx); isStored || errors.Is(unknown, commit.ErrNoFeed) || errors.Is(unknown, registry.ErrNoAccount) {
			return false, true, nil
		}
	}
	if err == nil || errors.Is(err, commit.ErrNoFeed) {
		return ended, true, nil // not ended if the object is not cached
	}
	return false, false, err
}

// isHeld reports whether an agent of any server has an account.
func (d *Dispatcher) isHeld(ctx context.Context, account vedette.AccountName) bool {
	if member, _ := d.assignments.Cacher(account); member != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, maxWriteThroughWait)
	defer cancel()
	row, err := d.store.Account(ctx, account)
	return err == nil && row.Holder != ""
}
