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
	mostWriting = 2 * time.Second
	mostThrough = mostWriting * 3 / 4 // of it, so that some is left for the history
)

// isStored reports whether the outcome is to be written through. What was only
// read has its way in the feed; a recache is asked for just to be stored. Of a dry
// run there is nothing to store.
func (e *errand) isStored() bool {
	_, recache := e.op.Args.(vedette.RecacheArgs)
	return recache || e.op.Changes()
}

// makeWay has commits make way for what is to be written through, until end.
func (d *Dispatch) makeWay(e *errand) (end func()) {
	if !e.isStored() {
		return func() {}
	}
	return d.book.Prioritize(e.op.Account)
}

// writeThrough stores what an operation wrote, and takes out what it deleted,
// before anybody hears of the outcome: who reads after it must see it. The account's
// commits have been making way for it since the operation was accepted. It reports
// whether the operation's end is in the history with it.
func (d *Dispatch) writeThrough(ctx context.Context, e *errand, out *vedette.Outcome, end *store.OperationRow) (ended bool) {
	if !e.isStored() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, mostThrough)
	defer cancel()
	if out.CacheObject != nil {
		return d.publish(ctx, e, func(term vedette.Term) ([]store.Change, bool, error) {
			return d.book.WriteThrough(ctx, e.op.Account, term, *out.CacheObject, end)
		})
	}
	deletes, gone := e.op.Args.(vedette.DeleteArgs)
	if !gone || deletes.NoWait || out.State != vedette.Done || len(out.UIDs) != len(out.Keys) {
		return false
	}
	for i, key := range out.Keys {
		if out.UIDs[i] == e.known.uid && key != e.known.key {
			continue // the cluster took the kind's name for another kind than we: that is where nothing was found
		}
		var with *store.OperationRow // nobody must read the end before the last is gone
		if i == len(out.Keys)-1 {
			with = end
		}
		ended = d.publish(ctx, e, func(term vedette.Term) ([]store.Change, bool, error) {
			return d.book.RemoveThrough(ctx, e.op.Account, term, key, out.UIDs[i], with)
		})
	}
	return ended
}

// publish writes in the term of the account's cacher. That is waited for: an outcome
// is the first thing that an agent says on a new connection, before it is given its
// accounts, and one may come just before a connection is lost.
func (d *Dispatch) publish(ctx context.Context, e *errand, write func(vedette.Term) ([]store.Change, bool, error)) (ended bool) {
	for {
		news := d.latest() // before the roster is asked, so that no news is missed
		err := store.ErrTerm
		if member, term := d.seats.Holder(e.op.Account); member != nil {
			var changes []store.Change
			changes, ended, err = write(term)
			d.hub.Publish(changes)
		}
		if err == nil || errors.Is(err, store.ErrNoFeed) {
			return ended // it is not, too, where the object is not cached
		}
		if !errors.Is(err, store.ErrTerm) || ctx.Err() != nil {
			d.log.Warn("what an operation wrote is not stored yet; its feed tells it", "operation", e.op.ID, "account", e.op.Account, "error", err)
			return false
		}
		select {
		case <-ctx.Done():
		case <-news:
		}
	}
}
