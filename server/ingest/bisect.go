package ingest

import (
	"context"
	"errors"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// commit stores a batch. Objects that the database cannot store are omitted, each after it was
// tried alone, so that one of them does not block its whole cluster. An omission is logged, counted
// and named in the feed's message.
func (p *Pipeline) commit(ctx context.Context, q *queue, b *batch) error {
	built := b.build()
	p.omissions.removeStored(&built, b.touched)
	return p.retry(ctx, q, b.term, "commit batch", func() error {
		err := p.store(ctx, built)
		if !errors.Is(err, sqldb.ErrData) || ctx.Err() != nil || len(built.Upserts) == 0 {
			return err
		}
		return p.commitBisecting(ctx, built, b.touched)
	})
}

// store commits a batch and publishes what was stored, even if it returns an error.
func (p *Pipeline) store(ctx context.Context, b commit.Batch) error {
	changes, err := p.ingest.store.Commit(ctx, b)
	p.ingest.hub.Publish(changes)
	return err
}

// commitBisecting stores a batch without the objects that cannot be stored. Digests that a snapshot
// drops are stored first, because later writes of the same objects must remain. Marks are stored
// last, because they cover everything else.
func (p *Pipeline) commitBisecting(ctx context.Context, b commit.Batch, touched map[vedette.Feed]bool) error {
	if len(b.Drops) > 0 {
		if err := p.store(ctx, commit.Batch{Account: b.Account, Term: b.Term, Drops: b.Drops}); err != nil {
			return err
		}
	}
	omitted, err := p.commitObjects(ctx, commit.Batch{Account: b.Account, Term: b.Term, Upserts: b.Upserts})
	if err != nil {
		return err
	}
	for _, o := range omitted {
		p.ingest.omitted.Add(1)
		if n, ok := p.ingest.omissionLog.Allow(); ok { // omissions that are not logged are still named in the feeds' messages
			p.log.Error("object left out: the database cannot store it", "account", b.Account, "object", o.describe(), "error", o.reason, "count",
				n)
		}
	}
	b.Upserts, b.Drops = nil, nil
	p.omissions.add(&b, touched, omitted)
	return p.store(ctx, b)
}

// omittedObject is an object that the database cannot store.
type omittedObject struct {
	key    vedette.Key
	reason error
}

// commitObjects stores objects. If that fails because of their data, it stores each half
// separately, until the objects that cannot be stored are alone. It returns these.
func (p *Pipeline) commitObjects(ctx context.Context, b commit.Batch) ([]omittedObject, error) {
	err := p.store(ctx, b)
	if !errors.Is(err, sqldb.ErrData) || ctx.Err() != nil {
		return nil, err
	}
	if len(b.Upserts) == 1 {
		return []omittedObject{{b.Upserts[0].Key, err}}, nil
	}
	half := len(b.Upserts) / 2
	first, second := b, b
	first.Upserts, second.Upserts = b.Upserts[:half], b.Upserts[half:]
	omitted, err := p.commitObjects(ctx, first)
	if err != nil {
		return nil, err
	}
	rest, err := p.commitObjects(ctx, second)
	return append(omitted, rest...), err
}
