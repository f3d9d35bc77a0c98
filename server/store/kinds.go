package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
)

// kindTable caches the ids of kinds. An id is never given to another kind, so the cache is right
// as long as the kind exists, and afterwards the id matches no row.
type kindTable struct {
	mu        sync.RWMutex
	ids       map[vedette.Kind]int64
	byID      map[int64]vedette.Kind
	lastSeq   int // number of loads begun
	loadedSeq int // load that ids and byID come from
}

// load reads all kinds, including those that other servers have inserted.
func (k *kindTable) load(ctx context.Context, s *Store) error {
	k.mu.Lock()
	k.lastSeq++
	seq := k.lastSeq
	k.mu.Unlock()
	ids, byID := map[vedette.Kind]int64{}, map[int64]vedette.Kind{}
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		var id int64
		var kind vedette.Kind
		if err := rows.Scan(&id, &kind.Name, &kind.Group); err != nil {
			return err
		}
		ids[kind], byID[id] = id, kind
		return nil
	}, `SELECT id, name, grp FROM kinds`)
	if err != nil {
		return fmt.Errorf("read the kinds: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if seq > k.loadedSeq { // an older load must not overwrite a newer one
		k.ids, k.byID, k.loadedSeq = ids, byID, seq
	}
	return nil
}

func (k *kindTable) cachedID(kind vedette.Kind) (int64, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	id, ok := k.ids[kind]
	return id, ok
}

// lookupID returns a kind's id, or false if no server knows the kind.
func (k *kindTable) lookupID(ctx context.Context, s *Store, kind vedette.Kind) (int64, bool, error) {
	if id, ok := k.cachedID(kind); ok {
		return id, true, nil
	}
	if err := k.load(ctx, s); err != nil {
		return 0, false, err
	}
	id, ok := k.cachedID(kind)
	return id, ok, nil
}

// withoutID returns those of the kinds that have no cached id.
func (k *kindTable) withoutID(kinds []vedette.Kind) (unknown []vedette.Kind) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, kind := range kinds {
		if _, ok := k.ids[kind]; !ok {
			unknown = append(unknown, kind)
		}
	}
	return unknown
}

// lookupKind returns the kind of an id that was read from the database.
func (k *kindTable) lookupKind(ctx context.Context, s *Store, id int64) (vedette.Kind, error) {
	if kind, ok := k.cachedKind(id); ok {
		return kind, nil
	}
	if err := k.load(ctx, s); err != nil {
		return vedette.Kind{}, err
	}
	kind, ok := k.cachedKind(id)
	if !ok {
		return kind, fmt.Errorf("kind %d is missing from the database", id)
	}
	return kind, nil
}

func (k *kindTable) cachedKind(id int64) (vedette.Kind, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	kind, ok := k.byID[id]
	return kind, ok
}

// lookupIDs returns the ids of those kinds that any account has.
func (k *kindTable) lookupIDs(ctx context.Context, s *Store, kinds []vedette.Kind) ([]int64, error) {
	if len(k.withoutID(kinds)) > 0 && !s.isOnlyWriter() {
		if err := k.load(ctx, s); err != nil {
			return nil, err
		}
	}
	ids := make([]int64, 0, len(kinds))
	for _, kind := range kinds {
		if id, ok := k.cachedID(kind); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// cached returns all cached kinds. The caller must not change the map, which nobody does: load
// replaces it.
func (k *kindTable) cached() map[int64]vedette.Kind {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.byID
}

// isOnlyWriter reports whether no other process inserts rows.
func (s *Store) isOnlyWriter() bool { return s.dialect.clockExpr == "" || s.lease != nil }
