package store

import (
	"context"
	"errors"

	"github.com/vedette-io/vedette/server/store/admission"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/lastanswers"
	"github.com/vedette-io/vedette/server/store/namefilter"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/tasks"
	"github.com/vedette-io/vedette/server/store/versions"
	"github.com/vedette-io/vedette/server/store/write"
	"github.com/vedette-io/vedette/server/store/writethrough"
)

// Store keeps what agents report. Its methods may be called concurrently. The embedded parts are of the first database. If there
// are others, the methods of Store itself ask the database of an account, or all.
type Store struct {
	*sqldb.DB
	*registry.Registry
	*write.Writer
	*read.Reader
	*history.History
	*tasks.Tasks
	*lastanswers.Answers
	*versions.Versions

	shards *shards // nil if there is one database
}

// Open opens the databases, and composes the parts of the store. The errors are those of sqldb.Open.
func Open(ctx context.Context, cfg sqldb.Config) (*Store, error) {
	if len(cfg.Shards) > 0 {
		cfg = cfg.WithToken()
	}
	var s *Store
	_, err := sqldb.Open(ctx, cfg, func(ctx context.Context, db *sqldb.DB) error {
		v := versions.New(2 * sqldb.IdleTimeout)
		d, dictionaries := compose(db, v)
		s = &Store{DB: d.DB, Registry: d.Registry, Versions: v, Writer: d.Writer, Reader: d.Reader, History: d.History,
			Tasks: tasks.New(db, dictionaries), Answers: lastanswers.New(db)}
		if err := d.prepare(ctx); err != nil {
			return err
		}
		return s.Tasks.Prepare(ctx)
	})
	if err != nil {
		return nil, err
	}
	if err := s.openShards(ctx, cfg); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// database is what the store has of each database.
type database struct {
	*sqldb.DB
	*registry.Registry
	*write.Writer
	*read.Reader
	*history.History

	name     string // directory.First, or as in sql.shards
	number   int    // 0 for the first
	versions *versions.Versions
}

func compose(db *sqldb.DB, v *versions.Versions) (*database, *catalog.Dictionaries) {
	filters := &namefilter.Set{}
	v.OnPublishAll(filters.ForgetAll)
	shared := write.Parts{DB: db, Versions: v, Kinds: catalog.NewKinds(db), Dictionaries: catalog.NewDictionaries(db),
		Locks:        &admission.Locks{},
		WriteThrough: &writethrough.State{}, NameFilters: filters, History: history.New(db)}
	names := catalog.NewAccounts(db, v)
	shared.Registry = registry.New(registry.Parts{DB: db, Versions: v, Accounts: names, Locks: shared.Locks,
		WriteThrough: shared.WriteThrough})
	return &database{DB: db, Registry: shared.Registry, versions: v, Writer: write.New(shared),
		Reader: read.New(read.Parts{DB: db, Registry: shared.Registry, Versions: v, Kinds: shared.Kinds, Dictionaries: shared.Dictionaries,
			Accounts: names, Locks: shared.Locks, NameFilters: shared.NameFilters}),
		History: shared.History}, shared.Dictionaries
}

// prepare prepares statements after the schema is migrated, and reads the kinds.
func (d *database) prepare(ctx context.Context) error {
	for _, prepare := range []func(context.Context) error{d.Writer.Prepare, d.Registry.Prepare, d.History.Prepare} {
		if err := prepare(ctx); err != nil {
			return err
		}
	}
	return nil
}
