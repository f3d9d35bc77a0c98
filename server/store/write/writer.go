package write

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/batch"
	"github.com/vedette-io/vedette/server/store/admission"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/namefilter"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/versions"
	"github.com/vedette-io/vedette/server/store/writethrough"
)

// Writer stores what agents report of their accounts' objects, and what operations find out about them. Its methods may
// be called concurrently.
type Writer struct {
	db           *sqldb.DB
	dialect      writeDialect
	registry     *registry.Registry
	versions     *versions.Versions
	kinds        *catalog.Kinds
	dicts        *catalog.Dictionaries
	locks        *admission.Locks
	writeThrough *writethrough.State
	nameFilters  *namefilter.Set
	history      *history.History
	operations   *admission.ActiveOperations
	unsettled    unsettledChanges
	labelGC      labelGC
	limits       limits

	tombstonesPurged atomic.Pointer[time.Time]
	declared         *batch.Line[vedette.AccountName, storedDeclaration]
	live             *batch.Line[liveFeeds, struct{}]
	held             heldMarks
	holding          *batch.Line[heldAccount, struct{}]
}

// Parts are what a Writer shares with other parts of the store.
type Parts struct {
	DB           *sqldb.DB
	Registry     *registry.Registry
	Versions     *versions.Versions
	Kinds        *catalog.Kinds
	Dictionaries *catalog.Dictionaries
	Locks        *admission.Locks
	WriteThrough *writethrough.State
	NameFilters  *namefilter.Set
	History      *history.History
}

// New returns the writer of a database.
func New(p Parts) *Writer {
	dialect := writeDialectOf(p.DB.Dialect.Name)
	w := &Writer{db: p.DB, dialect: dialect, registry: p.Registry, versions: p.Versions, kinds: p.Kinds, dicts: p.Dictionaries,
		locks:        p.Locks,
		writeThrough: p.WriteThrough, nameFilters: p.NameFilters, history: p.History, limits: defaultLimits,
		unsettled:  unsettledChanges{publish: func([]commit.Change) {}},
		operations: admission.NewActiveOperations(dialect.priorityChunkSize, p.DB.Dialect.SingleWriter)}
	w.declared = batch.New(registry.Together(w.readDeclarations, w.readDeclaration))
	w.live = batch.New(registry.Together(w.setManyLive, w.setFeedsLive))
	w.holding = batch.New(registry.Together(w.storeManyMarks, w.storeMarks))
	return w
}

// Prepare prepares the statements of each commit, and reads the kinds.
func (w *Writer) Prepare(ctx context.Context) error {
	if w.dialect.prepare != nil {
		if err := w.db.WithTimeout(ctx, func(ctx context.Context) error { return w.dialect.prepare(ctx, w.db) }); err != nil {
			return err
		}
	}
	return w.kinds.Load(ctx)
}
