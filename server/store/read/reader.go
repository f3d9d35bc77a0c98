package read

import (
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/batch"
	"github.com/vedette-io/vedette/server/store/admission"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/namefilter"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/versions"
)

// Reader reads what is stored of objects and feeds. Its methods may be called concurrently.
type Reader struct {
	db          *sqldb.DB
	dialect     readDialect
	registry    *registry.Registry
	versions    *versions.Versions
	kinds       *catalog.Kinds
	dicts       *catalog.Dictionaries
	names       *catalog.Accounts
	locks       *admission.Locks
	nameFilters *namefilter.Set
	searched    atomic.Pointer[time.Time] // when filters were last asked for; nil if never
	marks       *batch.Line[vedette.AccountName, []FeedStatus]
	totals      feedTotals
	inventory   inventory
	maxClusters int // of Spinnaker, per account, that the inventory lists
}

// Parts are what a Reader shares with other parts of the store.
type Parts struct {
	DB           *sqldb.DB
	Registry     *registry.Registry
	Versions     *versions.Versions
	Kinds        *catalog.Kinds
	Dictionaries *catalog.Dictionaries
	Accounts     *catalog.Accounts
	Locks        *admission.Locks
	NameFilters  *namefilter.Set
}

// New returns a reader of a database.
func New(p Parts) *Reader {
	r := &Reader{db: p.DB, dialect: readDialectOf(p.DB.Dialect.Name), registry: p.Registry, versions: p.Versions, kinds: p.Kinds,
		dicts: p.Dictionaries, names: p.Accounts, locks: p.Locks, nameFilters: p.NameFilters, maxClusters: 50_000}
	r.marks = batch.New(registry.Together(r.marksOfMany, r.marksOf))
	r.inventory.reading = admission.NewSemaphore(1)
	r.inventory.warnings.Interval = time.Minute
	return r
}
