package write

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/vedette-io/vedette/server/attributes"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

const (
	upsertHead = `INSERT INTO objects (account_id, kind_id, namespace, name, labelset, stored, uid, version, application, cluster, owner, attributes, head, body) VALUES `
	upsertRow  = `(?,?,?,?,?,?,?,?,?,?,?,?,?,?)`
	upsertTail = ` ON CONFLICT (account_id, kind_id, namespace, name) DO UPDATE SET labelset = excluded.labelset, stored = excluded.stored,
		uid = excluded.uid, version = excluded.version, application = excluded.application, cluster = excluded.cluster, owner = excluded.owner,
		attributes = excluded.attributes, head = excluded.head, body = excluded.body`
)

const sqliteRows = 32 // per upsert

func sqlitePrepare(ctx context.Context, db *sqldb.DB) error {
	var upserts, lookups []sqldb.Statement
	for _, n := range statementSizes {
		if n <= sqliteRows {
			upserts = append(upserts, sqliteUpsertStatement(n))
		}
		lookups = append(lookups, sqliteLookupStatement(n))
	}
	// It runs in each operation, and parsing it takes as long as executing it.
	lookups = append(lookups, selectBaseline)
	return errors.Join(db.Prepare(ctx, sqldb.WritePool, upserts...), db.Prepare(ctx, sqldb.ReadPool, lookups...))
}

func sqliteUpsertStatement(n int) sqldb.Statement {
	return sqldb.Named("upsert objects", upsertHead+sqldb.ValueRows(upsertRow, n)+upsertTail)
}

func sqliteLookupStatement(n int) sqldb.Statement {
	return sqldb.Named("look up objects", `WITH k (kind_id, namespace, name) AS (VALUES `+sqldb.ValueRows("(?,?,?)", n)+`)
		SELECT `+lookupColumns+` FROM k CROSS JOIN objects o ON o.account_id = ? AND o.kind_id = k.kind_id AND o.namespace = k.namespace AND o.name = k.name
		LEFT JOIN labelsets l ON l.id = o.labelset`)
}

// sqliteUpsert ignores cancellation, which the transaction checks: the driver would start a
// goroutine per statement to watch the context.
func sqliteUpsert(ctx context.Context, tx *sqldb.Tx, accountID int64, rows []objectRow) error {
	ctx = context.WithoutCancel(ctx)
	for len(rows) > 0 {
		n := largestSizeWithin(len(rows), sqliteRows)
		if err := tx.ExecPrepared(ctx, sqliteUpsertStatement(n), upsertArgs(accountID, sqldb.ToMicros(tx.Now), rows[:n])...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

func upsertArgs(account, now int64, rows []objectRow) []any {
	args := make([]any, 0, len(rows)*14)
	for i := range rows {
		r := &rows[i]
		args = append(args, account, r.KindID, r.Namespace, r.Name, r.labelset, now, r.uid, r.version, r.Application, r.Cluster, r.owner,
			r.attributes, r.head, r.body)
	}
	return args
}

// lookupColumns include the first attributes.PrefixBytes of the attributes.
const lookupColumns = `o.kind_id, o.namespace, o.name, o.uid, o.version, o.labelset, COALESCE(l.hash, 0), o.application, o.cluster, SUBSTR(o.attributes, 1, 2)`

// sqliteLookup joins a list of keys with the rows. If there are fewer keys than the statement has,
// the last one is repeated, and so is its row, which is skipped then.
func sqliteLookup(ctx context.Context, db *sqldb.DB, accountID int64, keys []catalog.Key, found func(storedRow)) error {
	ctx = context.WithoutCancel(ctx)
	var last catalog.Key
	once := func(r storedRow) {
		if r.Key != last {
			found(r)
		}
		last = r.Key
	}
	for len(keys) > 0 {
		n := smallestSizeFor(len(keys))
		args := make([]any, 0, n*3+1)
		for i := range n {
			k := keys[min(i, len(keys)-1)]
			args = append(args, k.KindID, k.Namespace, k.Name)
		}
		if err := db.QueryEach(ctx, scanStored(once), sqliteLookupStatement(n), append(args, accountID)...); err != nil {
			return err
		}
		keys = keys[min(n, len(keys)):]
	}
	return nil
}

func scanStored(found func(storedRow)) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var r storedRow
		var prefix sql.RawBytes // of the attributes
		if err := rows.Scan(&r.KindID, &r.Namespace, &r.Name, &r.uid, &r.version, &r.labelset, &r.hash, &r.Application, &r.Cluster,
			&prefix); err != nil {
			return err
		}
		r.managed = attributes.IsManaged(prefix)
		found(r)
		return nil
	}
}

func sqliteRemove(ctx context.Context, tx *sqldb.Tx, accountID int64, keys []catalog.Key) error {
	return removeByNamespace(ctx, tx, `DELETE FROM objects`, accountID, keys)
}

// removeByNamespace deletes rows by name, with one statement for each run of keys that share kind
// and namespace. The conditions are appended to the statement.
func removeByNamespace(ctx context.Context, tx *sqldb.Tx, statement string, accountID int64, keys []catalog.Key) error {
	for _, run := range groupByNamespace(keys) {
		for len(run) > 0 {
			n := min(len(run), 256)
			args := []any{accountID, run[0].KindID, run[0].Namespace}
			for _, k := range run[:n] {
				args = append(args, k.Name)
			}
			if _, err := tx.Exec(ctx, sqldb.Named("delete objects", statement+` WHERE account_id = ? AND kind_id = ? AND namespace = ? AND name IN (`+sqldb.Placeholders(n)+`)`),
				args...); err != nil {
				return err
			}
			run = run[n:]
		}
	}
	return nil
}

// onConflictAddClause is onConflictAdd of PostgreSQL and SQLite.
func onConflictAddClause(table string, key, columns []string) string {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = " + table + "." + c + " + excluded." + c
	}
	return " ON CONFLICT (" + strings.Join(key, ", ") + ") DO UPDATE SET " + strings.Join(set, ", ")
}
