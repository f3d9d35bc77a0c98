package dataset

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/tables"
	"github.com/vedette-io/vedette/test/corpus"
)

// filler writes a dataset to a store.
type filler struct {
	dataset  Dataset
	store    *store.Store
	redactor *redact.Redactor
	shape    string
	feeds    []commit.DeclaredFeed // of every account
}

// Kinds returns the kinds that each account reports: all kinds with a view.
func Kinds() []vedette.Resource { return tables.KnownResources() }

// batchSize is the number of objects per commit, as of a busy agent.
const batchSize = 500

// writers is the number of accounts that are written at the same time, so that objects are generated
// while others are written.
const writers = 4

// Fill writes a dataset to an empty store. Afterwards all feeds are live.
func Fill(ctx context.Context, st *store.Store, d Dataset) error {
	return FillInShape(ctx, st, d, "")
}

// FillInShape is Fill for a store that a server will use. A server asks for all objects of an
// account again if they were stored in another shape than it would store them in.
func FillInShape(ctx context.Context, st *store.Store, d Dataset, shape string) error {
	redactor, err := redact.New(redact.Config{}, tables.Projections(), vedette.HeaderAnnotations)
	if err != nil {
		return err
	}
	f := &filler{dataset: d, store: st, redactor: redactor, shape: shape}
	for _, r := range Kinds() {
		f.feeds = append(f.feeds, commit.DeclaredFeed{Feed: vedette.Feed{Kind: r.Kind}, Resource: r})
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range d.Accounts {
		group.Go(func() error {
			if err := f.fillAccount(ctx, i); err != nil {
				return fmt.Errorf("fill account %s: %w", AccountName(i), err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (f *filler) fillAccount(ctx context.Context, i int) error {
	w, err := f.claim(ctx, i)
	if err != nil {
		return err
	}
	g := generator{dataset: f.dataset, account: i, corpus: corpus.New(uint64(i) + 1), redactor: f.redactor, left: f.dataset.objectsOf(i),
		yield: func(o vedette.Object) error { return w.add(ctx, o) }}
	if err := g.run(); err != nil {
		return err
	}
	return w.finish(ctx, f.feeds)
}

// claim registers an account, acquires it and declares its feeds.
func (f *filler) claim(ctx context.Context, i int) (*accountWriter, error) {
	account := f.dataset.Account(i)
	if _, err := f.store.Register(ctx, account); err != nil {
		return nil, err
	}
	term, err := f.store.Acquire(ctx, account.Name, registry.CacherClaim{Agent: "bench", Server: "server",
		Shape: f.shape, Account: &account})
	if err != nil {
		return nil, err
	}
	_, err = f.store.Declare(ctx, account.Name, term, f.feeds, nil)
	return &accountWriter{store: f.store, account: account.Name, term: term}, err
}

// accountWriter collects the objects of an account into batches.
type accountWriter struct {
	store   *store.Store
	account vedette.AccountName
	term    vedette.Term
	objects []vedette.Object
}

func (w *accountWriter) add(ctx context.Context, o vedette.Object) error {
	w.objects = append(w.objects, o)
	if len(w.objects) < batchSize {
		return nil
	}
	return w.commit(ctx, nil)
}

func (w *accountWriter) commit(ctx context.Context, feeds []commit.FeedUpdate) error {
	_, err := w.store.Commit(ctx, commit.Batch{Account: w.account, Term: w.term, Upserts: w.objects, Feeds: feeds})
	w.objects = nil
	return err
}

// finish commits the last objects and the marks.
func (w *accountWriter) finish(ctx context.Context, feeds []commit.DeclaredFeed) error {
	mark := vedette.Mark("1000000")
	var updates []commit.FeedUpdate
	for _, f := range feeds {
		updates = append(updates, commit.FeedUpdate{Feed: f.Feed, Mark: &mark, State: vedette.FeedLive})
	}
	return w.commit(ctx, updates)
}
