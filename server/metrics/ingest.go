package metrics

import (
	"context"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// feedStore stores what agents report, as package ingest needs it.
type feedStore interface {
	Commit(ctx context.Context, b store.Batch) ([]store.Change, error)
	Declare(ctx context.Context, account vedette.AccountName, term vedette.Term, feeds []store.DeclaredFeed,
		unknownGroups []string) ([]store.Change, error)
	BeginSnapshot(ctx context.Context, account vedette.AccountName, term vedette.Term, feed vedette.Feed) error
	InvalidateFeed(ctx context.Context, account vedette.AccountName, term vedette.Term, feed vedette.Feed) error
	ScanObjects(ctx context.Context, account vedette.AccountName, feed vedette.Feed, yield func([]store.StoredObject) error) error
	Index(ctx context.Context, account vedette.AccountName, feed vedette.Feed, yield func(digests []uint64) error) error
	IndexWithoutNames(ctx context.Context, account vedette.AccountName, feed vedette.Feed, yield func(digests []uint64) error) error
}

// FeedStore stores what agents report and measures its batches.
type FeedStore struct {
	feedStore
	metrics *Metrics
}

// MeasureIngest returns a store that measures what next stores.
func (m *Metrics) MeasureIngest(next feedStore) *FeedStore { return &FeedStore{next, m} }

// Commit stores a batch.
func (s *FeedStore) Commit(ctx context.Context, b store.Batch) ([]store.Change, error) {
	start := time.Now()
	changes, err := s.feedStore.Commit(ctx, b)
	to := &s.metrics.ingest
	to.duration.WithLabelValues().Observe(time.Since(start).Seconds())
	if err != nil {
		to.batches.WithLabelValues("error").Inc()
		return changes, err
	}
	to.batches.WithLabelValues("ok").Inc()
	to.addObjects(&b)
	return changes, nil
}

func (g *ingest) addObjects(b *store.Batch) {
	bytes, drops := 0, 0
	for i := range b.Upserts {
		bytes += len(b.Upserts[i].Body)
	}
	for _, d := range b.Drops {
		drops += len(d.Digests)
	}
	g.objects.WithLabelValues("upsert").Add(float64(len(b.Upserts)))
	g.objects.WithLabelValues("delete").Add(float64(len(b.Deletes)))
	g.objects.WithLabelValues("drop").Add(float64(drops))
	g.bytes.WithLabelValues().Add(float64(bytes))
}
