// Package accountlist keeps what the store has of all accounts, because nearly every request needs some of it and it rarely changes.
// What is derived from a list is derived once for each list, by package latest.
package accountlist

import (
	"context"
	"iter"
	"maps"
	"reflect"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/latest"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/versions"
)

// Store reads accounts, and knows which have changed.
type Store interface {
	Accounts(ctx context.Context) ([]registry.Account, error)
	AccountsNamed(ctx context.Context, names ...vedette.AccountName) ([]registry.Account, error)
	// AccountsVersion changes after a change of an account is stored, and before the call that has changed it returns.
	AccountsVersion() uint64
	ChangedAccounts(since uint64) versions.AccountChanges
}

// Row is what lists have of an account. What changes whenever an agent comes or goes is left out.
type Row struct {
	Name vedette.AccountName
	// Namespaces are those that its agent found when it registered.
	Namespaces []string
	Properties vedette.Properties
	FirstSync  registry.FirstSync
}

// List is all accounts at one time. It is immutable. Lists share what is the same in both.
type List struct {
	version uint64 // of the accounts in it
	mark    uint64 // of the store's list of changed accounts
	rows    *rowMap
}

type rowMap = latest.Map[vedette.AccountName, Row]

// Row returns an account, or nil.
func (l *List) Row(name vedette.AccountName) *Row { return l.rows.Get(name) }

// Len returns the number of accounts.
func (l *List) Len() int { return l.rows.Len() }

// Names returns the names of all accounts, sorted.
func (l *List) Names() []vedette.AccountName { return l.rows.Changed(rowMap{}) }

// Rows returns all accounts in the order of their names.
func (l *List) Rows() iter.Seq2[vedette.AccountName, *Row] { return l.rows.All() }

// Changed returns the accounts that are not the same as in an earlier list; all if that is nil.
func (l *List) Changed(before *List) []vedette.AccountName {
	if before == nil {
		return l.Names()
	}
	return l.rows.Changed(*before.rows)
}

// Equal reports whether two lists have the same accounts. It does not compare them: a list shares its rows with the one before it
// if none has changed.
func (l *List) Equal(other *List) bool { return l.rows == other.rows }

// IsSince reports whether a list has the same accounts as another one, or is newer. What is derived of it is good enough for whoever has
// the other one, who must not replace it by something older.
func (l *List) IsSince(other *List) bool { return l.Equal(other) || l.version >= other.version }

// Cache keeps the newest list. It is safe for concurrent use.
type Cache struct {
	store Store
	lists latest.Value[List]
}

// NewCache returns a Cache, which reads nothing before the first call.
func NewCache(s Store) *Cache { return &Cache{store: s} }

// Current returns the accounts as they are when it is called, or later. Only changes by this process are known,
// so that an answer from memory also needs the lease of the database.
func (c *Cache) Current(ctx context.Context) (*List, error) {
	version := c.store.AccountsVersion() // before the read, so that no change is missed
	return c.lists.Get(ctx, func(l *List) bool { return l.version >= version }, func(ctx context.Context, last *List) (*List, error) {
		return c.read(ctx, last, version)
	})
}

// Last returns the accounts as they were read last, or nil.
func (c *Cache) Last() *List { return c.lists.Last() }

// maxNamedAccounts is how many accounts are read by their names. If more have changed, all are
// read, because databases limit the parameters of a statement.
const maxNamedAccounts = 500

// read reads the accounts that have changed since the last list, or all if there is none.
func (c *Cache) read(ctx context.Context, last *List, version uint64) (*List, error) {
	isFirst := last == nil
	if isFirst {
		last = &List{rows: &rowMap{}}
	}
	changes := c.store.ChangedAccounts(last.mark)
	changed := changes.Names
	var rows []registry.Account
	var err error
	switch {
	case isFirst || changes.All || len(changed) > maxNamedAccounts:
		changed = last.Names() // all are replaced
		rows, err = c.store.Accounts(ctx)
	case len(changed) > 0:
		rows, err = c.store.AccountsNamed(ctx, changed...)
	}
	if err != nil {
		return nil, err
	}
	return &List{version: version, mark: changes.Mark, rows: replace(last.rows, changed, rows)}, nil
}

// replace returns the rows with those of the named accounts that exist in place of those before. It is the same map if nothing differs.
func replace(before *rowMap, names []vedette.AccountName, rows []registry.Account) *rowMap {
	changes := make(map[vedette.AccountName]*Row, len(names))
	for _, name := range names {
		changes[name] = nil
	}
	for i := range rows {
		row := &Row{Name: rows[i].Name, Namespaces: rows[i].Namespaces, Properties: rows[i].Properties, FirstSync: rows[i].FirstSync}
		if known := before.Get(row.Name); known != nil && reflect.DeepEqual(known, row) {
			row = known
		}
		changes[row.Name] = row
	}
	maps.DeleteFunc(changes, func(name vedette.AccountName, row *Row) bool { return before.Get(name) == row })
	if len(changes) == 0 {
		return before
	}
	after := before.With(changes)
	return &after
}
