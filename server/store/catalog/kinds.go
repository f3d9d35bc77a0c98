package catalog

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Kinds caches the ids of kinds. An id is never given to another kind, so the cache is right
// as long as the kind exists, and afterwards the id matches no row.
type Kinds struct {
	db        *sqldb.DB
	mu        sync.RWMutex
	ids       map[vedette.Kind]int64
	byID      map[int64]vedette.Kind
	lastSeq   int // number of loads begun
	loadedSeq int // load that ids and byID come from
}

// NewKinds returns the kinds of a database. Load reads them.
func NewKinds(db *sqldb.DB) *Kinds { return &Kinds{db: db} }

// Load reads all kinds, including those that other servers have inserted.
func (k *Kinds) Load(ctx context.Context) error {
	k.mu.Lock()
	k.lastSeq++
	seq := k.lastSeq
	k.mu.Unlock()
	ids, byID := map[vedette.Kind]int64{}, map[int64]vedette.Kind{}
	err := k.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var id int64
		var kind vedette.Kind
		if err := rows.Scan(&id, &kind.Name, &kind.Group); err != nil {
			return err
		}
		ids[kind], byID[id] = id, kind
		return nil
	}, sqldb.Named("read the kinds", `SELECT id, name, grp FROM kinds`))
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if seq > k.loadedSeq { // an older load must not overwrite a newer one
		k.ids = ids
		k.byID = byID
		k.loadedSeq = seq
	}
	return nil
}

// CachedID returns the id of a kind, if it is known without reading the database.
func (k *Kinds) CachedID(kind vedette.Kind) (int64, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	id, ok := k.ids[kind]
	return id, ok
}

// LookupID returns a kind's id, or false if no server knows the kind.
func (k *Kinds) LookupID(ctx context.Context, kind vedette.Kind) (int64, bool, error) {
	if id, ok := k.CachedID(kind); ok {
		return id, true, nil
	}
	if err := k.Load(ctx); err != nil {
		return 0, false, err
	}
	id, ok := k.CachedID(kind)
	return id, ok, nil
}

// WithoutID returns those of the kinds that have no cached id.
func (k *Kinds) WithoutID(kinds []vedette.Kind) (unknown []vedette.Kind) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, kind := range kinds {
		if _, ok := k.ids[kind]; !ok {
			unknown = append(unknown, kind)
		}
	}
	return unknown
}

// LookupKind returns the kind of an id that was read from the database.
func (k *Kinds) LookupKind(ctx context.Context, id int64) (vedette.Kind, error) {
	if kind, ok := k.CachedKind(id); ok {
		return kind, nil
	}
	if err := k.Load(ctx); err != nil {
		return vedette.Kind{}, err
	}
	kind, ok := k.CachedKind(id)
	if !ok {
		return kind, fmt.Errorf("kind %d is missing from the database", id)
	}
	return kind, nil
}

// CachedKind returns the kind of an id, if it is known without reading the database.
func (k *Kinds) CachedKind(id int64) (vedette.Kind, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	kind, ok := k.byID[id]
	return kind, ok
}

// LookupIDs returns the ids of those kinds that any account has.
func (k *Kinds) LookupIDs(ctx context.Context, kinds []vedette.Kind) ([]int64, error) {
	if len(k.WithoutID(kinds)) > 0 && !k.db.IsOnlyWriter() {
		if err := k.Load(ctx); err != nil {
			return nil, err
		}
	}
	ids := make([]int64, 0, len(kinds))
	for _, kind := range kinds {
		if id, ok := k.CachedID(kind); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// Cached returns all cached kinds. The caller must not change the map, which nobody does: load
// replaces it.
func (k *Kinds) Cached() map[int64]vedette.Kind {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.byID
}
