package store

import (
	"context"
	"database/sql"
	"slices"

	"github.com/vedette-io/vedette"
)

var namespaceKind = vedette.Kind{Name: "Namespace"}

// Namespaces returns the names of the Namespaces that are stored of the accounts, or of all accounts
// if none is given, sorted. An account that does not cache Namespaces is missing.
func (s *Store) Namespaces(ctx context.Context, accounts ...vedette.AccountName) (map[vedette.AccountName][]string, error) {
	const action = "read the namespaces of accounts"
	names := map[vedette.AccountName][]string{}
	kind, ok, err := s.kinds.lookupID(ctx, s, namespaceKind)
	if err != nil || !ok {
		return names, s.wrapError(action, err)
	}
	where, args := accountCondition(accounts)
	err = s.queryEach(ctx, func(rows *sql.Rows) error {
		var account, name string
		err := rows.Scan(&account, &name)
		names[vedette.AccountName(account)] = append(names[vedette.AccountName(account)], name)
		return err
	}, `SELECT a.name, o.name FROM accounts a `+s.dialect.orderedJoin+` objects o ON o.account_id = a.id AND o.kind_id = ? WHERE `+where+
		` ORDER BY a.id, o.name`, append([]any{kind}, args...)...)
	return names, s.wrapError(action, err)
}

// noteNamespaces notes that a commit changed the Namespaces of an account, or may have.
func (s *Store) noteNamespaces(account vedette.AccountName, changes []Change, err error) {
	if err != nil || slices.ContainsFunc(changes, func(c Change) bool { return c.Key.Kind == namespaceKind }) {
		s.versions.accountLog.note(account)
	}
}
