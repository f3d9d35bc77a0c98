package ingest

import (
	"context"
	"errors"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// commit stores a batch. Objects that the database can't keep are left out, each
// after it was tried alone, with a line in the log, a counter, and a message on their
// feed: one of them can't hold up its whole cluster.
func (l *Lane) commit(ctx context.Context, q *queue, b *batch) error {
	built := b.build()
	l.left.settle(&built, b.told)
	return l.try(ctx, q, b.term, "commit batch", func() error {
		err := l.store(ctx, built)
		if !errors.Is(err, store.ErrData) || ctx.Err() != nil || len(built.Upserts) == 0 {
			return err
		}
		return l.commitApart(ctx, built, b.told)
	})
}

// store commits, and tells those who follow what was stored, before an error too.
func (l *Lane) store(ctx context.Context, b store.Batch) error {
	b.Source = l.source
	changes, err := l.in.store.Commit(ctx, b)
	l.in.hub.Publish(changes)
	return err
}

// commitApart stores a batch without the objects that can't be stored. What a snapshot
// drops goes first, since what is written after it must stay, and the marks last.
func (l *Lane) commitApart(ctx context.Context, b store.Batch, told map[vedette.Feed]bool) error {
	if len(b.Drops) > 0 {
		if err := l.store(ctx, store.Batch{Account: b.Account, Term: b.Term, Drops: b.Drops}); err != nil {
			return err
		}
	}
	out, err := l.commitObjects(ctx, store.Batch{Account: b.Account, Term: b.Term, Upserts: b.Upserts})
	if err != nil {
		return err
	}
	for _, o := range out {
		l.in.refused.Add(1)
		if n, ok := l.in.leftOut.Pass(); ok { // their feeds' messages say so too
			l.log.Error("object left out: the database can't keep it", "account", b.Account, "object", o.key.String(), "error", o.reason, "count", n)
		}
	}
	b.Upserts, b.Drops = nil, nil
	l.left.add(&b, told, out)
	return l.store(ctx, b)
}

// leftOut is an object that the database can't keep.
type leftOut struct {
	key    vedette.Key
	reason error
}

// commitObjects stores objects by halves, until those that can't be stored are alone,
// and returns these.
func (l *Lane) commitObjects(ctx context.Context, b store.Batch) ([]leftOut, error) {
	err := l.store(ctx, b)
	if !errors.Is(err, store.ErrData) || ctx.Err() != nil {
		return nil, err
	}
	if len(b.Upserts) == 1 {
		return []leftOut{{b.Upserts[0].Key, err}}, nil
	}
	half := len(b.Upserts) / 2
	first, second := b, b
	first.Upserts, second.Upserts = b.Upserts[:half], b.Upserts[half:]
	out, err := l.commitObjects(ctx, first)
	if err != nil {
		return nil, err
	}
	more, err := l.commitObjects(ctx, second)
	return append(out, more...), err
}
