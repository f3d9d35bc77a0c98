// Package ingest writes the changes that agents report to the store. It keeps the order of each
// feed, and writes a feed's mark in the same transaction as the data that it covers. It accepts
// changes no faster than the database stores them.
package ingest

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/server/store"
)

// feedStore is the part of the store that ingest uses.
type feedStore interface {
	Commit(ctx context.Context, b store.Batch) ([]store.Change, error)
	Declare(ctx context.Context, account vedette.AccountName, term vedette.Term, feeds []store.DeclaredFeed,
		unknownGroups []string) ([]store.Change, error)
	BeginSnapshot(ctx context.Context, account vedette.AccountName, term vedette.Term, feed vedette.Feed) error
	// Index passes digests to yield in portions. yield owns each portion.
	Index(ctx context.Context, account vedette.AccountName, feed vedette.Feed, yield func(digests []uint64) error) error
}

// Config limits the memory of ingest.
type Config struct {
	// MaxBytes is how many bytes of records, of all agents together, may be in memory, waiting for
	// the database. Zero means 64 MiB.
	MaxBytes int64
}

// Ingest is shared by all agents of a server.
type Ingest struct {
	store       feedStore
	hub         *Hub
	log         *slog.Logger
	limit       int64
	budget      *semaphore.Weighted
	omitted     atomic.Int64
	omissionLog logthrottle.Limiter // limits log lines about omitted objects
}

// New returns an Ingest that writes to st and publishes to hub what was written.
func New(cfg Config, st feedStore, hub *Hub, log *slog.Logger) *Ingest {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 64 << 20
	}
	return &Ingest{store: st, hub: hub, log: log, limit: cfg.MaxBytes, budget: semaphore.NewWeighted(cfg.MaxBytes),
		omissionLog: logthrottle.Limiter{Interval: time.Second}}
}

// Limit returns how many bytes of records may be in memory at once.
func (in *Ingest) Limit() int64 { return in.limit }

// weight returns how much of the budget a record takes. A record larger than the budget takes all
// of it, because otherwise it would wait forever.
func (in *Ingest) weight(size int) int64 { return min(int64(size), in.limit) }

// Omitted returns how many objects were omitted because the database cannot store them.
func (in *Ingest) Omitted() int64 { return in.omitted.Load() }

// NewPipeline returns a new agent's pipeline. The caller calls Run once, and Put from one
// goroutine. Agents of one source share the source's turns in the store.
func (in *Ingest) NewPipeline(source string, r responder, log *slog.Logger) *Pipeline {
	return &Pipeline{ingest: in, source: source, responder: r, log: log, pending: newTaskSet(), spaceFreed: make(chan struct{}),
		ready:        make(chan struct{}, 1),
		workFinished: make(chan struct{}), queues: map[vedette.AccountName]*queue{}, revoked: map[vedette.AccountName]vedette.Term{}}
}
