package catalog

import (
	"context"
	"database/sql"
	"slices"
	"sync/atomic"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/versions"
)

// AccountNames are the names of accounts by their ids. It never changes.
type AccountNames struct {
	version uint64                        // of the accounts, when they were read
	Visible map[int64]vedette.AccountName // to readers
	Hidden  []int64                       // removed and retired accounts, which may still have objects
	Folded  map[string]int                // how many visible accounts have a folded name
	ids     map[vedette.AccountName]int64 // of visible accounts
}

// Accounts caches the names of accounts.
type Accounts struct {
	db       *sqldb.DB
	versions *versions.Versions
	cached   atomic.Pointer[AccountNames]
}

// NewAccounts returns the accounts of a database. They are read when they are needed.
func NewAccounts(db *sqldb.DB, v *versions.Versions) *Accounts { return &Accounts{db: db, versions: v} }

// Read returns the accounts, so that a list of thousands of objects needs no join. They are
// Read again only after accounts have changed.
func (a *Accounts) Read(ctx context.Context) (*AccountNames, error) {
	version := a.versions.AccountsVersion()
	if names := a.cached.Load(); names != nil && names.version == version && a.db.KnowsWrites() {
		return names, nil
	}
	names := &AccountNames{version: version, Visible: map[int64]vedette.AccountName{}, Folded: map[string]int{},
		ids: map[vedette.AccountName]int64{}}
	err := a.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var id int64
		var name sql.NullString
		err := rows.Scan(&id, &name)
		if name.Valid {
			names.Visible[id] = vedette.AccountName(name.String)
			names.ids[vedette.AccountName(name.String)] = id
			names.Folded[vedette.AccountName(name.String).Folded()]++
		} else {
			names.Hidden = append(names.Hidden, id)
		}
		return err
	}, sqldb.Named("read the accounts by id", `SELECT id, name FROM accounts`))
	if err != nil {
		return nil, err
	}
	a.cached.Store(names)
	return names, nil
}

// Cached returns the accounts that were read last; nil before the first read.
func (a *Accounts) Cached() *AccountNames { return a.cached.Load() }

// ID returns the id of a visible account.
func (n *AccountNames) ID(name vedette.AccountName) (id int64, known bool) {
	id, known = n.ids[name]
	return id, known
}

// Ids returns the ids of those visible accounts that are wanted, or of all if none is named.
func (n *AccountNames) Ids(wanted []vedette.AccountName) []int64 {
	set := make(map[vedette.AccountName]bool, len(wanted))
	for _, name := range wanted {
		set[name] = true
	}
	ids := make([]int64, 0, len(n.Visible))
	for id, name := range n.Visible {
		if len(wanted) == 0 || set[name] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// IdsByName returns the ids of those of the accounts that are visible.
func (n *AccountNames) IdsByName(wanted map[vedette.AccountName]bool) map[vedette.AccountName]int64 {
	ids := make(map[vedette.AccountName]int64, len(wanted))
	for id, name := range n.Visible {
		if wanted[name] {
			ids[name] = id
		}
	}
	return ids
}
