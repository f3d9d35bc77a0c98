package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// mostWriting bounds how long an outcome is held up by the database. What could
// not be stored by then comes with its feed, or when the database is back.
const mostWriting = 2 * time.Second

// writeThrough stores what an operation wrote, and takes out what it deleted,
// before anybody hears of the outcome: who reads after it must see it.
func (d *Dispatch) writeThrough(ctx context.Context, e *errand, out *vedette.Outcome) {
	deletes, gone := e.op.Args.(vedette.DeleteArgs)
	gone = gone && !deletes.NoWait && len(out.UIDs) == len(out.Keys)
	if out.Fresh == nil && !gone {
		return
	}
	member, term := d.seats.Holder(e.op.Account)
	if member == nil {
		return // the next cacher begins with what is stored, and tells the rest
	}
	if out.Fresh != nil {
		d.publish(e, func() ([]store.Change, error) { return d.book.WriteThrough(ctx, e.op.Account, term, *out.Fresh) })
	}
	if gone && out.State == vedette.Done {
		for i, key := range out.Keys {
			d.publish(e, func() ([]store.Change, error) {
				return d.book.RemoveThrough(ctx, e.op.Account, term, key, out.UIDs[i])
			})
		}
	}
}

func (d *Dispatch) publish(e *errand, write func() ([]store.Change, error)) {
	changes, err := write()
	d.hub.Publish(changes)
	if err == nil || errors.Is(err, store.ErrNoFeed) || errors.Is(err, store.ErrTerm) {
		return // it is not cached, or by another one now
	}
	d.log.Warn("what an operation wrote is not stored yet; its feed tells it", "operation", e.op.ID, "account", e.op.Account, "error", err)
}
