package store

import (
	"context"
	"database/sql"
	"slices"

	"github.com/vedette-io/vedette"
)

// accountNames are the names of accounts by their ids. It never changes.
type accountNames struct {
	version uint64                        // of the accounts, when they were read
	visible map[int64]vedette.AccountName // to readers
	hidden  []int64                       // removed and retired accounts, which may still have objects
	folded  map[string]int                // how many visible accounts have a folded name
}

// accountNames returns the accounts, so that a list of thousands of objects needs no join. They are
// read again only after accounts have changed.
func (s *Store) accountNames(ctx context.Context) (*accountNames, error) {
	version := s.AccountsVersion()
	if names := s.cachedNames.Load(); names != nil && names.version == version && s.isOnlyWriter() {
		return names, nil
	}
	names := &accountNames{version: version, visible: map[int64]vedette.AccountName{}, folded: map[string]int{}}
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		var id int64
		var name sql.NullString
		err := rows.Scan(&id, &name)
		if name.Valid {
			names.visible[id] = vedette.AccountName(name.String)
			names.folded[vedette.AccountName(name.String).Folded()]++
		} else {
			names.hidden = append(names.hidden, id)
		}
		return err
	}, `SELECT id, name FROM accounts`)
	if err != nil {
		return nil, err
	}
	s.cachedNames.Store(names)
	return names, nil
}

// HasSimilarAccount reports whether other services take another account for this one. New accounts
// with such names are rejected, so both were registered by an older version.
func (s *Store) HasSimilarAccount(ctx context.Context, name vedette.AccountName) (bool, error) {
	names, err := s.accountNames(ctx)
	if err != nil {
		return false, s.wrapError("read the names of the accounts", err)
	}
	return names.folded[name.Folded()] > 1, nil
}

// ids returns the ids of those visible accounts that are wanted, or of all if none is named.
func (n *accountNames) ids(wanted []vedette.AccountName) []int64 {
	set := make(map[vedette.AccountName]bool, len(wanted))
	for _, name := range wanted {
		set[name] = true
	}
	ids := make([]int64, 0, len(n.visible))
	for id, name := range n.visible {
		if len(wanted) == 0 || set[name] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// idsOf returns the ids of those accounts of objects that are visible.
func (n *accountNames) idsOf(objects []ObjectRef) map[vedette.AccountName]int64 {
	wanted := map[vedette.AccountName]bool{}
	for i := range objects {
		wanted[objects[i].Account] = true
	}
	return n.idsByName(wanted)
}

func (n *accountNames) idsByName(wanted map[vedette.AccountName]bool) map[vedette.AccountName]int64 {
	ids := make(map[vedette.AccountName]int64, len(wanted))
	for id, name := range n.visible {
		if wanted[name] {
			ids[name] = id
		}
	}
	return ids
}

// namespacesByID returns the names of namespaces by the id of their account, without those of accounts
// that are not visible.
func (n *accountNames) namespacesByID(namespaces []NamespaceRef) map[int64][]any {
	wanted := map[vedette.AccountName]bool{}
	for _, namespace := range namespaces {
		wanted[namespace.Account] = true
	}
	ids, byID := n.idsByName(wanted), map[int64][]any{}
	for _, namespace := range namespaces {
		if id, ok := ids[namespace.Account]; ok && isValidText(namespace.Name, maxName) {
			byID[id] = append(byID[id], namespace.Name)
		}
	}
	return byID
}
