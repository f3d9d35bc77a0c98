package store

import (
	"context"
	"database/sql"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
)

// accountNames caches the names of the accounts that readers see, so that a list of thousands of
// objects needs no join. The zero value is ready.
type accountNames struct {
	mu      sync.Mutex
	version uint64                        // of the accounts, when they were read
	byID    map[int64]vedette.AccountName // nil before the first read; never changed
}

// accountNames returns the names of accounts by their ids. The caller must not change the map.
func (s *Store) accountNames(ctx context.Context) (map[int64]vedette.AccountName, error) {
	version := s.AccountsVersion()
	if names := s.cachedNames.at(version); names != nil && s.isOnlyWriter() {
		return names, nil
	}
	names := map[int64]vedette.AccountName{}
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		var id int64
		var name string
		err := rows.Scan(&id, &name)
		names[id] = vedette.AccountName(name)
		return err
	}, `SELECT id, name FROM accounts WHERE name IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	s.cachedNames.set(version, names)
	return names, nil
}

func (n *accountNames) at(version uint64) map[int64]vedette.AccountName {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.version != version {
		return nil
	}
	return n.byID
}

func (n *accountNames) set(version uint64, names map[int64]vedette.AccountName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byID == nil || version >= n.version {
		n.version, n.byID = version, names
	}
}

// idsOfAccounts returns the ids of those accounts that are wanted, or of all if none is named.
func idsOfAccounts(names map[int64]vedette.AccountName, wanted []vedette.AccountName) []int64 {
	set := make(map[vedette.AccountName]bool, len(wanted))
	for _, name := range wanted {
		set[name] = true
	}
	ids := make([]int64, 0, len(names))
	for id, name := range names {
		if len(wanted) == 0 || set[name] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
