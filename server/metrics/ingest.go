package metrics

import (
	"context"
	"time"

	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/store/commit"
)

// FeedStore stores what agents report and measures its batches.
type FeedStore struct {
	ingest.Store
	metrics *Metrics
}

// MeasureIngest returns a store that measures what next stores.
func (m *Metrics) MeasureIngest(next ingest.Store) *FeedStore { return &FeedStore{next, m} }

// Commit stores a batch.
func (s *FeedStore) Commit(ctx context.Context, b commit.Batch) ([]commit.Change, error) {
	start := time.Now()
	changes, err := s.Store.Commit(ctx, b)
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

func (g *ingestMetrics) addObjects(b *commit.Batch) {
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
