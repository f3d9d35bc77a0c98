package registry

import (
	"context"
	"database/sql"
	"errors"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

var selectAccountNames = sqldb.Named("read the names of accounts", `SELECT name FROM accounts WHERE name IS NOT NULL ORDER BY name`)

// AccountNames returns the names of all accounts, in order. It reads much less than Accounts.
func (r *Registry) AccountNames(ctx context.Context) ([]vedette.AccountName, error) {
	names := []vedette.AccountName{}
	err := r.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, vedette.AccountName(name))
		return err
	}, selectAccountNames)
	return names, r.db.WrapError("read the names of the accounts", err)
}

// HasSimilarAccount reports whether other services take another account for this one. New accounts
// with such names are rejected, so both were registered by an older version.
func (r *Registry) HasSimilarAccount(ctx context.Context, name vedette.AccountName) (bool, error) {
	n, err := r.CountSimilar(ctx, name)
	return n > 1, err
}

// CountSimilar returns how many accounts other services take for the account of a name, with itself.
func (r *Registry) CountSimilar(ctx context.Context, name vedette.AccountName) (int, error) {
	names, err := r.names.Read(ctx)
	if err != nil {
		return 0, r.db.WrapError("read the names of the accounts", err)
	}
	return names.Folded[name.Folded()], nil
}

// Remains reports whether an account of a name exists, or is retired, and returns the term that the next account of the name has at least.
func (r *Registry) Remains(ctx context.Context, name vedette.AccountName) (remains bool, next int64, err error) {
	n := 0
	err = r.db.QueryOne(ctx, sqldb.ScanInto(&n, &next), sqldb.Named("find what remains of an account",
		`SELECT (SELECT COUNT(*) FROM accounts WHERE name = ? OR retired = ?), (SELECT value FROM counters WHERE name = 'term')`), string(name), string(name))
	return n > 0, next, r.db.WrapError("find what remains of account "+string(name), err)
}

// RaiseTerm makes a term the smallest that the next account has. An account that comes from another database must not have a term
// of there again.
func (r *Registry) RaiseTerm(ctx context.Context, term int64) error {
	_, err := r.db.ExecWrite(ctx, sqldb.Named("raise the next term", `UPDATE counters SET value = ? WHERE name = 'term' AND value < ?`), term, term)
	return r.db.WrapError("raise the next term", err)
}

// Servers returns, of the accounts whose agents are connected, to which server they are. One statement answers for all.
func (r *Registry) Servers(ctx context.Context, accounts []vedette.AccountName) (map[vedette.AccountName]vedette.ServerID, error) {
	servers := map[vedette.AccountName]vedette.ServerID{}
	if len(accounts) == 0 {
		return servers, nil
	}
	condition, args := AccountCondition(accounts)
	err := r.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var name vedette.AccountName
		var server vedette.ServerID
		err := rows.Scan(&name, &server)
		servers[name] = server
		return err
	}, sqldb.Named("find the servers of accounts", `SELECT a.name, a.server FROM accounts a WHERE a.server <> '' AND `+condition), args...)
	return servers, r.db.WrapError("find the servers of accounts", err)
}

// AccountSizes returns how many objects are stored of each account that has feeds. Accounts that are
// removed or retired have no name, and are left out.
func (r *Registry) AccountSizes(ctx context.Context) (map[vedette.AccountName]int64, error) {
	sizes := map[vedette.AccountName]int64{}
	err := r.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var name vedette.AccountName
		var objects int64
		err := rows.Scan(&name, &objects)
		sizes[name] = objects
		return err
	}, sqldb.Named("count the objects of accounts", `SELECT a.name, SUM(f.objects) FROM feeds f JOIN accounts a ON a.id = f.account_id WHERE a.name IS NOT NULL GROUP BY a.name`))
	return sizes, r.db.WrapError("read the sizes of accounts", err)
}

// AccountCondition is for queries that call the accounts "a".
func AccountCondition(accounts []vedette.AccountName) (string, []any) {
	if len(accounts) == 0 {
		return "a.name IS NOT NULL", nil
	}
	c := sqldb.IsOneOf("a.name", accounts, sqldb.MaxAccountName)
	return c.SQL, c.Args
}

// AccountID returns an account's id for readers, which need no lock.
func (r *Registry) AccountID(ctx context.Context, account vedette.AccountName) (id int64, err error) {
	err = r.db.QueryOne(ctx, sqldb.ScanInto(&id), sqldb.Named("find the id of an account", `SELECT id FROM accounts WHERE name = ?`), string(account))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNoAccount
	}
	return id, err
}
