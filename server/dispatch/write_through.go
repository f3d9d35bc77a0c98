package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// What the database may hold an outcome up by: what could not be stored by then comes
// with its feed, and its end when the database is back.
const (
	maxWriteWait        = 2 * time.Second
	maxWriteThroughWait = maxWriteWait * 3 / 4 // of it, so that some is left for the history
)

// needsWriteThrough reports whether the outcome is to be written through. What was only
// read has its way in the feed; a recache is asked for just to be stored. Of a dry
// run there is nothing to store.
func (f *inflight) needsWriteThrough() bool {
	_, recache := f.op.Args.(vedette.RecacheArgs)
	return recache || f.op.Changes()
}

// prioritize has commits make way for what is to be written through, until end.
func (d *Dispatcher) prioritize(f *inflight) (end func()) {
	if !f.needsWriteThrough() {
		return func() {}
	}
	return d.store.Prioritize(f.op.Account)
}

// writeThrough stores what an operation wrote, and takes out what it deleted,
// before anybody hears of the outcome: who reads after it must see it. The account's
// commits have been making way for it since the operation was accepted. It reports
// whether the operation's end is in the history with it.
func (d *Dispatcher) writeThrough(ctx context.Context, f *inflight, out *vedette.Outcome, end *store.OperationRow) (ended bool) {
	if !f.needsWriteThrough() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, maxWriteThroughWait)
	defer cancel()
	if out.CacheObject != nil {
		return d.writeInTerm(ctx, f, func(term vedette.Term) ([]store.Change, bool, error) {
			return d.store.WriteThrough(ctx, f.op.Account, term, *out.CacheObject, end)
		})
	}
	args, isDelete := f.op.Args.(vedette.DeleteArgs)
	if !isDelete || args.NoWait || out.State != vedette.Done || len(out.UIDs) != len(out.Keys) {
		return false
	}
	for i, key := range out.Keys {
		if out.UIDs[i] == f.known.uid && key != f.known.key {
			continue // the cluster took the kind's name for another kind than we: that is where nothing was found
		}
		var endRow *store.OperationRow // nobody must read the end before the last is gone
		if i == len(out.Keys)-1 {
			endRow = end
		}
		ended = d.writeInTerm(ctx, f, func(term vedette.Term) ([]store.Change, bool, error) {
			return d.store.RemoveThrough(ctx, f.op.Account, term, key, out.UIDs[i], endRow)
		})
	}
	return ended
}

// writeInTerm writes in the term of the account's cacher. That is waited for: an outcome
// is the first thing that an agent says on a new connection, before it is given its
// accounts, and one may come just before a connection is lost.
func (d *Dispatcher) writeInTerm(ctx context.Context, f *inflight, write func(vedette.Term) ([]store.Change, bool, error)) (ended bool) {
	for {
		changed := d.nextChange() // before the roster is asked, so that no news is missed
		err := store.ErrTerm
		if member, term := d.assignments.Cacher(f.op.Account); member != nil {
			var changes []store.Change
			changes, ended, err = write(term)
			d.publisher.Publish(changes)
		}
		if err == nil || errors.Is(err, store.ErrNoFeed) {
			return ended // it is not, too, where the object is not cached
		}
		if !errors.Is(err, store.ErrTerm) || ctx.Err() != nil {
			d.log.Warn("write-through failed; the feed will report the object", "operation", f.op.ID, "account", f.op.Account, "error", err)
			return false
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}
