package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/vedette-io/vedette"
)

// kindTable knows the numbers of kinds. A number is never given to another kind, so
// what was read once is right for as long as the kind is there, and else leads to
// nothing.
type kindTable struct {
	mu        sync.RWMutex
	ids       map[vedette.Kind]int64
	byID      map[int64]vedette.Kind
	lastSeq   int // loads, by which an older one is known
	loadedSeq int // the load that ids and byID are of
}

// load reads what other servers have numbered since the last time.
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
	if seq > k.loadedSeq { // an older read must not undo a newer one
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

// lookupID returns a kind's number, and false where no server has met it.
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

// withoutID returns those kinds that have no number.
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

// lookupKind returns the kind of a number that was read from the database.
func (k *kindTable) lookupKind(ctx context.Context, s *Store, id int64) (vedette.Kind, error) {
	if kind, ok := k.cachedKind(id); ok {
		return kind, nil
	}
	if err := k.load(ctx, s); err != nil {
		return vedette.Kind{}, err
	}
	kind, ok := k.cachedKind(id)
	if !ok {
		return kind, fmt.Errorf("the kind numbered %d is missing from the database", id)
	}
	return kind, nil
}

func (k *kindTable) cachedKind(id int64) (vedette.Kind, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	kind, ok := k.byID[id]
	return kind, ok
}
