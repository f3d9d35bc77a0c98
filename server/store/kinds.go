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
	mu    sync.RWMutex
	ids   map[vedette.Kind]int64
	byID  map[int64]vedette.Kind
	begun int // loads, by which an older one is known
	shown int // the load that ids and byID are of
}

// load reads what other servers have numbered since the last time.
func (k *kindTable) load(ctx context.Context, s *Store) error {
	k.mu.Lock()
	k.begun++
	turn := k.begun
	k.mu.Unlock()
	ids, byID := map[vedette.Kind]int64{}, map[int64]vedette.Kind{}
	err := s.each(ctx, func(rows *sql.Rows) error {
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
	if turn > k.shown { // an older read must not undo a newer one
		k.ids, k.byID, k.shown = ids, byID, turn
	}
	return nil
}

func (k *kindTable) known(kind vedette.Kind) (int64, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	id, ok := k.ids[kind]
	return id, ok
}

// find returns a kind's number, and false where no server has met it.
func (k *kindTable) find(ctx context.Context, s *Store, kind vedette.Kind) (int64, bool, error) {
	if id, ok := k.known(kind); ok {
		return id, true, nil
	}
	if err := k.load(ctx, s); err != nil {
		return 0, false, err
	}
	id, ok := k.known(kind)
	return id, ok, nil
}

// missing returns those kinds that have no number.
func (k *kindTable) missing(kinds []vedette.Kind) (without []vedette.Kind) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, kind := range kinds {
		if _, ok := k.ids[kind]; !ok {
			without = append(without, kind)
		}
	}
	return without
}

// name returns the kind of a number that was read from the database.
func (k *kindTable) name(ctx context.Context, s *Store, id int64) (vedette.Kind, error) {
	if kind, ok := k.named(id); ok {
		return kind, nil
	}
	if err := k.load(ctx, s); err != nil {
		return vedette.Kind{}, err
	}
	kind, ok := k.named(id)
	if !ok {
		return kind, fmt.Errorf("the kind numbered %d is missing from the database", id)
	}
	return kind, nil
}

func (k *kindTable) named(id int64) (vedette.Kind, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	kind, ok := k.byID[id]
	return kind, ok
}
