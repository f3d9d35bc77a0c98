package store

import (
	"context"
	"errors"

	"github.com/vedette-io/vedette/server/store/directory"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Shard is a database beside the first.
type Shard struct {
	*sqldb.DB

	Name string // as in sql.shards
}

// Shards returns the databases beside the first, in the order of the configuration.
func (s *Store) Shards() []Shard {
	if s.shards == nil {
		return nil
	}
	all := make([]Shard, len(s.shards.others))
	for i, d := range s.shards.others {
		all[i] = Shard{d.DB, d.name}
	}
	return all
}

// KeepLease is sqldb.DB.KeepLease for all databases. The first lease that is lost ends all.
func (s *Store) KeepLease(ctx context.Context) error {
	if s.shards == nil {
		return s.DB.KeepLease(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := s.tellAll(ctx, func(ctx context.Context, d *database) error {
		err := d.KeepLease(ctx)
		if err != nil {
			cancel()
		}
		return err
	})
	if err != nil {
		for _, d := range s.all() {
			d.AbandonLease()
		}
	}
	return err
}

// Size is sqldb.DB.Size of all databases.
func (s *Store) Size(ctx context.Context) (int64, error) {
	sizes, err := askAll(ctx, s, func(ctx context.Context, d *database) (int64, error) { return d.Size(ctx) })
	return sum(sizes), err
}

// Close is sqldb.DB.Close for all databases. The first is closed last: who has no row there has ended.
func (s *Store) Close() error {
	var errs []error
	for _, d := range s.all() {
		if d.name != directory.First {
			errs = append(errs, inDatabase(d.name, d.Close()))
		}
	}
	return errors.Join(append(errs, s.DB.Close())...)
}
