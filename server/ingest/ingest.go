// Package ingest brings the changes that agents report into the store: in
// order per feed, a feed's mark in one transaction with the data that it
// covers, and never faster than the database can take them.
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

// feedStore is what ingest asks of the store.
type feedStore interface {
	Commit(ctx context.Context, b store.Batch) ([]store.Change, error)
	Declare(ctx context.Context, account vedette.AccountName, term vedette.Term, feeds []store.DeclaredFeed, unknownGroups []string) ([]store.Change, error)
	BeginSnapshot(ctx context.Context, account vedette.AccountName, term vedette.Term, feed vedette.Feed) error
	// Index gives each portion of digests away: yield may keep it.
	Index(ctx context.Context, account vedette.AccountName, feed vedette.Feed, yield func(digests []uint64) error) error
}

// Config bounds what ingest holds.
type Config struct {
	// MaxBytes of records, of all agents together, that may be in memory at once,
	// waiting for the database. Zero means 64 MiB.
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
	omissionLog logthrottle.Limiter // lines of the log about objects that are left out
}

// New returns an Ingest that writes to st and tells hub what was written.
func New(cfg Config, st feedStore, hub *Hub, log *slog.Logger) *Ingest {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 64 << 20
	}
	return &Ingest{store: st, hub: hub, log: log, limit: cfg.MaxBytes, budget: semaphore.NewWeighted(cfg.MaxBytes),
		omissionLog: logthrottle.Limiter{Interval: time.Second}}
}

// Limit returns how many bytes of records may be in memory at once.
func (in *Ingest) Limit() int64 { return in.limit }

// weight returns what a record takes of the budget: one that is larger than all
// of it takes it all, or it could never pass.
func (in *Ingest) weight(size int) int64 { return min(int64(size), in.limit) }

// Omitted returns how many objects the database would not take.
func (in *Ingest) Omitted() int64 { return in.omitted.Load() }

// NewPipeline returns a new agent's way into the store. Whoever gets it calls Run once
// and Put from one goroutine. Agents of one source share its turns in the store.
func (in *Ingest) NewPipeline(source string, r responder, log *slog.Logger) *Pipeline {
	return &Pipeline{ingest: in, source: source, responder: r, log: log, pending: newTaskSet(), spaceFreed: make(chan struct{}), ready: make(chan struct{}, 1),
		workFinished: make(chan struct{}), queues: map[vedette.AccountName]*queue{}, revoked: map[vedette.AccountName]vedette.Term{}}
}
