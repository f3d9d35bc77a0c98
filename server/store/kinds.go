package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/vedette-io/vedette"
)

// kindTable numbers kinds. A number is never given up, so what was read once
// stays true.
type kindTable struct {
	mu   sync.RWMutex
	ids  map[vedette.Kind]int64
	byID map[int64]vedette.Kind
}

// load reads what other servers have numbered since the last time.
func (k *kindTable) load(ctx context.Context, s *Store) error {
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
	if len(ids) >= len(k.ids) { // an older read must not undo a newer one
		k.ids, k.byID = ids, byID
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

// number returns a kind's number and gives it one where it has none. It must not
// be called within a transaction: SQLite has one writer.
func (k *kindTable) number(ctx context.Context, s *Store, kind vedette.Kind) (int64, error) {
	id, ok, err := k.find(ctx, s, kind)
	if err != nil || ok {
		return id, err
	}
	// Another server may be first; then the insert fails and the second look finds.
	insertErr := s.connected(ctx, s.db, func(ctx context.Context, conn *sql.Conn) error {
		_, err := exec(ctx, conn, &s.dialect, `INSERT INTO kinds (name, grp) VALUES (?, ?)`, kind.Name, kind.Group)
		return err
	})
	id, ok, err = k.find(ctx, s, kind)
	if err == nil && !ok {
		err = fmt.Errorf("number the kind %s: %w", kind, errors.Join(insertErr, sql.ErrNoRows))
	}
	return id, err
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
