package write

import (
	"context"
	"strings"

	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// mysqlStatements writes rows by statements of at most a quarter of the server's
// max_allowed_packet.
type mysqlStatements struct{ maxBytes int }

func (w *mysqlStatements) prepare(ctx context.Context, db *sqldb.DB) error {
	var packet int
	if err := db.QueryOne(ctx, sqldb.ScanInto(&packet), sqldb.Named("read max_allowed_packet", `SELECT @@max_allowed_packet`)); err != nil {
		return err
	}
	w.maxBytes = packet / 4
	for _, n := range statementSizes {
		if err := db.Prepare(ctx, sqldb.WritePool, mysqlUpsertStatement(n)); err != nil {
			return err
		}
	}
	return nil
}

func mysqlUpsertStatement(n int) sqldb.Statement {
	return sqldb.Named("upsert objects", mysqlUpsertHead+sqldb.ValueRows(upsertRow, n)+mysqlUpsertTail)
}

// MySQL reserves the word "stored", MariaDB does not: it must be quoted unless a table's name
// precedes it.
const (
	mysqlUpsertHead = "INSERT INTO objects (account_id, kind_id, namespace, name, labelset, `stored`, uid, version, application, cluster, owner, attributes, head, body) VALUES "
	mysqlUpsertTail = " ON DUPLICATE KEY UPDATE labelset = VALUES(labelset), `stored` = VALUES(`stored`), uid = VALUES(uid), version = VALUES(version)," +
		" application = VALUES(application), cluster = VALUES(cluster), owner = VALUES(owner), attributes = VALUES(attributes), head = VALUES(head), body = VALUES(body)"
)

// upsert uses VALUES(column), which MySQL has deprecated, because MariaDB has no alternative.
func (w *mysqlStatements) upsert(ctx context.Context, tx *sqldb.Tx, accountID int64, rows []objectRow) error {
	for len(rows) > 0 {
		n := w.rowsPerStatement(rows)
		if err := tx.ExecPrepared(ctx, mysqlUpsertStatement(n), upsertArgs(accountID, sqldb.ToMicros(tx.Now), rows[:n])...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// rowsPerStatement returns how many of the rows to write in one statement, at least one.
func (w *mysqlStatements) rowsPerStatement(rows []objectRow) int {
	const otherColumns = 3072 // bytes of all other columns, nearly always fewer
	size, n := 0, 0
	for n < len(rows) && n < statementSizes[0] {
		size += len(rows[n].head) + len(rows[n].body) + len(rows[n].attributes) + otherColumns
		if size > w.maxBytes {
			break
		}
		n++
	}
	return largestSizeWithin(max(n, 1), statementSizes[0])
}

// onDuplicateKeyAddClause is onConflictAdd.
func onDuplicateKeyAddClause(_ string, _, columns []string) string {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = " + c + " + VALUES(" + c + ")"
	}
	return " ON DUPLICATE KEY UPDATE " + strings.Join(set, ", ")
}

// mysqlRemove makes the planner use the primary key. In a small table it would read all rows and
// lock those of other accounts.
func mysqlRemove(ctx context.Context, tx *sqldb.Tx, accountID int64, keys []catalog.Key) error {
	return removeByNamespace(ctx, tx, `DELETE objects FROM objects`+tx.Dialect.KeyHint, accountID, keys)
}

func mysqlLookup(ctx context.Context, db *sqldb.DB, accountID int64, keys []catalog.Key, found func(storedRow)) error {
	for len(keys) > 0 {
		n := min(len(keys), 512)
		where, args := mysqlKeys(keys[:n])
		err := db.QueryEach(ctx, scanStored(found), sqldb.Named("look up objects", `SELECT `+lookupColumns+` FROM objects o LEFT JOIN labelsets l ON l.id = o.labelset
			WHERE o.account_id = ? AND (`+where+`)`), append([]any{accountID}, args...)...)
		if err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// mysqlKeys returns a condition for keys that the optimizers of both MySQL and MariaDB turn into
// ranges of the primary key, unlike tuples in an IN list.
func mysqlKeys(keys []catalog.Key) (string, []any) {
	parts := []string{}
	args := make([]any, 0, len(keys)*2)
	for _, run := range groupByNamespace(keys) {
		parts = append(parts, `o.kind_id = ? AND o.namespace = ? AND o.name IN (`+sqldb.Placeholders(len(run))+`)`)
		args = append(args, run[0].KindID, run[0].Namespace)
		for _, k := range run {
			args = append(args, k.Name)
		}
	}
	return strings.Join(parts, " OR "), args
}
