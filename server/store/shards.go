package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/directory"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// shards are the databases beside the first. docs/decisions/0197 says which accounts are where.
type shards struct {
	directory *directory.Directory
	others    []*database

	mu        sync.Mutex
	inventory read.MergedInventory // guarded by mu
}

// openShards opens the databases beside the first.
func (s *Store) openShards(ctx context.Context, cfg sqldb.Config) error {
	if len(cfg.Shards) == 0 {
		if s.DB.Dialect.Name == sqldb.SQLite { // other databases name no SQLite database, except in tests
			return nil
		}
		return directory.CheckAlone(ctx, s.DB)
	}
	if err := claimShards(ctx, s.DB, cfg); err != nil {
		return err
	}
	names := make([]string, len(cfg.Shards))
	for i, shard := range cfg.Shards {
		names[i] = shard.Name
	}
	v := &shards{directory: directory.New(s.DB, s.Versions, names), others: make([]*database, len(cfg.Shards))}
	parts := make([]*database, len(cfg.Shards))
	for i, shard := range cfg.Shards { // in order, because the versions are not locked
		parts[i] = &database{name: shard.Name, number: i + 1, versions: s.Versions.NewPart(i + 1)}
	}
	group, opening := errgroup.WithContext(ctx)
	var keeping sync.WaitGroup
	keep, stopKeeping := context.WithCancel(ctx)
	defer keeping.Wait()
	defer stopKeeping()
	keepLease := func(d *sqldb.DB) { keeping.Go(func() { _ = d.KeepLease(keep) }) } // one that is lost fails again, for whoever runs the store
	keepLease(s.DB)
	for i, shard := range cfg.Shards {
		group.Go(func() error {
			if err := parts[i].open(opening, cfg.ShardConfig(shard)); err != nil {
				return inDatabase(shard.Name, err)
			}
			keepLease(parts[i].DB) // it may take longer to open the others
			return nil
		})
	}
	err := group.Wait()
	v.others = slices.DeleteFunc(parts, func(d *database) bool { return d.DB == nil })
	s.shards = v
	return err // Close closes those that are open
}

// open opens a database beside the first.
func (d *database) open(ctx context.Context, cfg sqldb.Config) error {
	_, err := sqldb.Open(ctx, cfg, func(ctx context.Context, db *sqldb.DB) error {
		parts, _ := compose(db, d.versions)
		if err := parts.prepare(ctx); err != nil {
			return err
		}
		name, number := d.name, d.number
		*d = *parts
		d.name = name
		d.number = number
		return nil
	})
	return err
}

// claimShards verifies which databases there are, before anything is written that a server would take for its own.
func claimShards(ctx context.Context, first *sqldb.DB, cfg sqldb.Config) error {
	claims, err := directory.Begin(ctx, first)
	if err != nil {
		return err
	}
	for _, shard := range cfg.Shards {
		if first.Dialect.Name == sqldb.SQLite && shard.URL == cfg.URL { // its file is locked
			return vedette.Errorf(vedette.Invalid, "database %s of sql.shards is the one of sql.url: remove it", shard.Name)
		}
		err := sqldb.Inspect(ctx, cfg.ShardConfig(shard), func(ctx context.Context, db *sqldb.DB) error {
			return claims.Claim(ctx, shard.Name, db)
		})
		if err != nil {
			return inDatabase(shard.Name, err)
		}
	}
	return claims.Record(ctx, first)
}

// inDatabase says in which database an error is. The first has no name.
func inDatabase(name string, err error) error {
	if err == nil || name == directory.First {
		return err
	}
	return fmt.Errorf("database %s: %w", name, err)
}

// first returns the first database.
func (s *Store) first() *database {
	return &database{DB: s.DB, Registry: s.Registry, Writer: s.Writer, Reader: s.Reader, History: s.History, versions: s.Versions}
}

// all returns all databases, the first at first.
func (s *Store) all() []*database {
	if s.shards == nil {
		return []*database{s.first()}
	}
	return append([]*database{s.first()}, s.shards.others...)
}

// named returns a database.
func (s *Store) named(name string) (*database, error) {
	for _, d := range s.all() {
		if d.name == name {
			return d, nil
		}
	}
	return nil, vedette.Errorf(vedette.Unavailable, "it is in database %s, which sql.shards of this server does not name: add it, and restart the server", name)
}

// of returns the database of an account that is written.
func (s *Store) of(ctx context.Context, account vedette.AccountName) (*database, error) {
	if s.shards == nil {
		return s.first(), nil
	}
	name, err := s.shards.directory.Of(ctx, account)
	if err != nil {
		return nil, err
	}
	return s.ofAccount(account, name)
}

func (s *Store) ofAccount(account vedette.AccountName, name string) (*database, error) {
	d, err := s.named(name)
	if err != nil {
		return nil, fmt.Errorf("account %s: %w", account, err)
	}
	return d, nil
}

// toRead returns the database of an account that is read.
func (s *Store) toRead(ctx context.Context, account vedette.AccountName) (*database, error) {
	if s.shards == nil {
		return s.first(), nil
	}
	found, err := s.shards.directory.Find(ctx, []vedette.AccountName{account})
	if err != nil {
		return nil, err
	}
	return s.ofAccount(account, found[account])
}

// share is what one database answers of a question: about some of the values that were asked for.
type share[V any] struct {
	*database
	values []V
}

// split returns the databases of what belongs to accounts, each with its share.
func split[V any](ctx context.Context, s *Store, values []V, accountOf func(V) vedette.AccountName) ([]share[V], error) {
	accounts := make([]vedette.AccountName, len(values))
	for i, v := range values {
		accounts[i] = accountOf(v)
	}
	found, err := s.shards.directory.Find(ctx, accounts)
	if err != nil {
		return nil, err
	}
	var shares []share[V]
	for i, account := range accounts {
		d, err := s.ofAccount(account, found[account])
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(shares, func(sh share[V]) bool { return sh.name == d.name })
		if at < 0 {
			at, shares = len(shares), append(shares, share[V]{database: d})
		}
		shares[at].values = append(shares[at].values, values[i])
	}
	return shares, nil
}

// splitAccounts is split for accounts, of which none means all.
func (s *Store) splitAccounts(ctx context.Context, accounts []vedette.AccountName) ([]share[vedette.AccountName], error) {
	if len(accounts) == 0 {
		return sharesOf[vedette.AccountName](s.all()), nil
	}
	return split(ctx, s, accounts, func(a vedette.AccountName) vedette.AccountName { return a })
}

// sharesOf asks databases about everything.
func sharesOf[V any](databases []*database) []share[V] {
	shares := make([]share[V], len(databases))
	for i, d := range databases {
		shares[i].database = d
	}
	return shares
}

// ask asks all at once. If one fails there is no answer: half of it would pass for the whole.
func ask[V, A any](ctx context.Context, shares []share[V], question func(ctx context.Context, d share[V]) (A, error)) ([]A, error) {
	answers := make([]A, len(shares))
	group, asking := errgroup.WithContext(ctx)
	for i, d := range shares {
		group.Go(func() (err error) {
			answers[i], err = question(asking, d)
			return inDatabase(d.name, err)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return answers, nil
}

// askAll is ask for all databases.
func askAll[A any](ctx context.Context, s *Store, question func(ctx context.Context, d *database) (A, error)) ([]A, error) {
	return ask(ctx, sharesOf[struct{}](s.all()), func(ctx context.Context, d share[struct{}]) (A, error) { return question(ctx, d.database) })
}

// tell does something in all at once. One that fails does not keep the others from it.
func tell[V any](ctx context.Context, shares []share[V], do func(ctx context.Context, d share[V]) error) error {
	errs := make([]error, len(shares))
	var all sync.WaitGroup
	for i, d := range shares {
		all.Go(func() { errs[i] = inDatabase(d.name, do(ctx, d)) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// tellAll is tell for all databases.
func (s *Store) tellAll(ctx context.Context, do func(ctx context.Context, d *database) error) error {
	return tell(ctx, sharesOf[struct{}](s.all()), func(ctx context.Context, d share[struct{}]) error { return do(ctx, d.database) })
}

// sum adds up numbers.
func sum[N int | int64](numbers []N) (total N) {
	for _, n := range numbers {
		total += n
	}
	return total
}
