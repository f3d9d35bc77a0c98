// Package ingest writes the changes that agents report to the store. It keeps the order of each
// feed, and writes a feed's mark in the same transaction as the data that it covers. It accepts
// changes no faster than the database stores them.
package ingest

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/server/store/commit"
)

// Store is the part of the store that ingest uses.
type Store interface {
	Commit(ctx context.Context, b commit.Batch) ([]commit.Change, error)
	Declare(ctx context.Context, account vedette.AccountName, term vedette.Term, feeds []commit.DeclaredFeed,
		unknownGroups []string) ([]commit.Change, error)
	BeginSnapshot(ctx context.Context, account vedette.AccountName, term vedette.Term, feed vedette.Feed) error
	// InvalidateFeed makes the next snapshot of a feed report each of its objects.
	InvalidateFeed(ctx context.Context, account vedette.AccountName, term vedette.Term, feed vedette.Feed) error
	// ScanObjects passes the objects of a feed to yield in portions.
	ScanObjects(ctx context.Context, account vedette.AccountName, feed vedette.Feed, yield func([]commit.StoredObject) error) error
	// Index passes digests to yield in portions. yield owns each portion.
	Index(ctx context.Context, account vedette.AccountName, feed vedette.Feed, yield func(digests []uint64) error) error
	// IndexWithoutNames is Index for agents that do not send Begin.named_digests.
	IndexWithoutNames(ctx context.Context, account vedette.AccountName, feed vedette.Feed, yield func(digests []uint64) error) error
}

// Config limits the memory of ingest.
type Config struct {
	// Memory for changes of all agents that wait for the database. The agents of one host get a quarter of it.
	MaxBytes int64 `config:"ingestBytes" format:"bytes" default:"64MiB"`
}

// Ingest is shared by all agents of a server.
type Ingest struct {
	store       Store
	hub         *Hub
	log         *slog.Logger
	limit       int64
	budget      *fair.Line // of bytes of records, by source
	omitted     atomic.Int64
	omissionLog logthrottle.Limiter // limits log lines about omitted objects

	verifications *fair.Line // bounds how many run at the same time, by source
	verifyTime    verifyTime
	drift         driftCounts
	driftLog      logthrottle.Limiter // limits log lines about drift
}

// New returns an Ingest that writes to st and publishes to hub what was written.
func New(cfg Config, st Store, hub *Hub, log *slog.Logger) *Ingest {
	cfg = configfile.WithDefaults(cfg)
	return &Ingest{store: st, hub: hub, log: log, limit: cfg.MaxBytes, budget: newBudget(cfg.MaxBytes),
		omissionLog: logthrottle.Limiter{Interval: time.Second}, verifications: fair.New(fair.Config{Capacity: maxVerifications}),
		verifyTime: verifyTime{sources: map[string]*sourceTime{}},
		driftLog:   logthrottle.Limiter{Interval: time.Second}}
}

// newBudget returns the budget of records. Sources take turns. One may hold all of it, because server/agentserver
// limits what a source has unacknowledged.
func newBudget(bytes int64) *fair.Line {
	return fair.New(fair.Config{Capacity: bytes, Share: bytes})
}

// Limit returns how many bytes of records may be in memory at once.
func (in *Ingest) Limit() int64 { return in.limit }

// weight returns how much of the budget a record takes. A record larger than the budget takes all
// of it, because otherwise it would wait forever.
func (in *Ingest) weight(size int) int64 { return min(int64(size), in.limit) }

// Omitted returns how many objects were omitted because the database cannot store them.
func (in *Ingest) Omitted() int64 { return in.omitted.Load() }

// NewPipeline returns a new agent's pipeline. The caller calls Run once, and Put from one
// goroutine. Agents of one source share the source's turns, here and in the store, which reads the source from Run's context.
func (in *Ingest) NewPipeline(source string, r responder, log *slog.Logger) *Pipeline {
	return &Pipeline{ingest: in, source: source, responder: r, log: log, pending: newTaskSet(), spaceFreed: make(chan struct{}),
		ready:        make(chan struct{}, 1),
		workFinished: make(chan struct{}), queues: map[vedette.AccountName]*queue{}, revoked: map[vedette.AccountName]vedette.Term{}}
}
