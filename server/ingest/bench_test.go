package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
)

// discardingStore stores nothing, so that a benchmark measures ingest alone.
type discardingStore struct{ Store }

func (discardingStore) Commit(context.Context, commit.Batch) ([]commit.Change, error) {
	return nil, nil
}

// BenchmarkPipeline puts records into the pipelines of ten sources at once.
func BenchmarkPipeline(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	in := New(Config{}, discardingStore{}, NewHub(), slog.New(slog.DiscardHandler))
	const sources = 10
	begin, done := make(chan struct{}), make(chan error, sources)
	for i := range sources {
		p := in.NewPipeline(fmt.Sprint("host ", i), &fakeResponder{}, slog.New(slog.DiscardHandler))
		go func() { _ = p.Run(ctx) }()
		go func() {
			<-begin
			for n := range b.N / sources {
				step := Step{Type: Upsert, Account: "prod", Feed: pods, Size: 1000, Object: vedette.Object{
					Key: vedette.Key{Kind: pods.Kind, Namespace: "shop", Name: fmt.Sprint("web-", n%1000)}}}
				if err := p.Put(ctx, step); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	b.ResetTimer()
	close(begin)
	for range sources {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}
