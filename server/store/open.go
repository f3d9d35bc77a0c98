package store

import (
	"context"

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

// Store keeps what agents report. Its methods may be called concurrently.
type Store struct {
	*sqldb.DB
	*registry.Registry
	*write.Writer
	*read.Reader
	*history.History
	*tasks.Tasks
	*lastanswers.Answers
	*versions.Versions
}

// Open opens a database, and composes the parts of the store. The errors are those of sqldb.Open.
func Open(ctx context.Context, cfg sqldb.Config) (*Store, error) {
	var s *Store
	_, err := sqldb.Open(ctx, cfg, func(ctx context.Context, db *sqldb.DB) error {
		s = compose(db)
		return s.prepare(ctx)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func compose(db *sqldb.DB) *Store {
	v := versions.New(2 * sqldb.IdleTimeout)
	filters := &namefilter.Set{}
	v.OnPublishAll(filters.ForgetAll)
	shared := write.Parts{DB: db, Versions: v, Kinds: catalog.NewKinds(db), Dictionaries: catalog.NewDictionaries(db),
		Locks:        &admission.Locks{},
		WriteThrough: &writethrough.State{}, NameFilters: filters, History: history.New(db)}
	names := catalog.NewAccounts(db, v)
	shared.Registry = registry.New(registry.Parts{DB: db, Versions: v, Accounts: names, Locks: shared.Locks,
		WriteThrough: shared.WriteThrough})
	return &Store{DB: db, Registry: shared.Registry, Versions: v, Writer: write.New(shared),
		Reader: read.New(read.Parts{DB: db, Registry: shared.Registry, Versions: v, Kinds: shared.Kinds, Dictionaries: shared.Dictionaries,
			Accounts: names, Locks: shared.Locks, NameFilters: shared.NameFilters}),
		History: shared.History, Tasks: tasks.New(db, shared.Dictionaries), Answers: lastanswers.New(db)}
}

// prepare prepares statements after the schema is migrated, and reads the kinds.
func (s *Store) prepare(ctx context.Context) error {
	for _, prepare := range []func(context.Context) error{s.Writer.Prepare, s.Registry.Prepare, s.History.Prepare, s.Tasks.Prepare} {
		if err := prepare(ctx); err != nil {
			return err
		}
	}
	return nil
}
