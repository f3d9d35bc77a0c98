package history

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Size is what the history keeps.
type Size struct {
	Entries int64
	Bytes   int64     // about, on disk
	Oldest  time.Time // when the oldest was accepted; zero if there is none
}

// Size returns the size of the history. It reads an index of all entries.
func (h *History) HistorySize(ctx context.Context) (Size, error) {
	var size Size
	var oldest sql.NullInt64
	err := h.db.QueryOne(ctx, sqldb.ScanInto(&size.Entries, &size.Bytes, &oldest), sqldb.Named("measure the history", `SELECT COUNT(*), COALESCE(SUM(bytes), 0), MIN(accepted) FROM operations`))
	size.Oldest = sqldb.FromMicros(oldest.Int64)
	return size, h.db.WrapError("measure the history of operations", err)
}

// HistoryBytesOf returns the bytes of the operations of one verb, as Size counts them. It reads all of these.
func (h *History) HistoryBytesOf(ctx context.Context, verb vedette.Verb) (bytes int64, err error) {
	err = h.db.QueryOne(ctx, sqldb.ScanInto(&bytes), sqldb.Named("measure the operations of a verb", `SELECT COALESCE(SUM(bytes), 0) FROM operations WHERE verb = ?`), string(verb))
	return bytes, h.db.WrapError("measure the history of operations", err)
}

// operationTables hold what is kept of operations, each with the column id.
var operationTables = []string{"operation_changes", "operation_objects", "operations"}

// PurgeOperations deletes at most limit of the operations that were accepted before a time, the
// oldest first, and returns their number and their bytes. It is one short transaction, which others do not wait for long.
func (h *History) PurgeOperations(ctx context.Context, before time.Time, limit int) (n int, bytes int64, err error) {
	return h.purgeOperations(ctx, `SELECT id, bytes FROM operations WHERE accepted < ?`, limit, sqldb.ToMicros(before))
}

// PurgeOperationsOf is PurgeOperations for those of one verb.
func (h *History) PurgeOperationsOf(ctx context.Context, verb vedette.Verb, before time.Time, limit int) (n int, bytes int64, err error) {
	return h.purgeOperations(ctx, `SELECT id, bytes FROM operations WHERE verb = ? AND accepted < ?`, limit, string(verb), sqldb.ToMicros(before))
}

func (h *History) purgeOperations(ctx context.Context, query string, limit int, args ...any) (n int, bytes int64, err error) {
	err = h.db.WriteLowPriority(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		n, bytes = 0, 0
		var ids []any
		err := tx.QueryEach(ctx, func(rows *sql.Rows) error {
			var id string
			var size int64
			err := rows.Scan(&id, &size)
			ids, bytes = append(ids, id), bytes+size
			return err
		}, sqldb.Named("find operations to purge", fmt.Sprintf(`%s ORDER BY accepted, id LIMIT %d`, query, max(0, limit))), args...)
		if err != nil || len(ids) == 0 {
			return err
		}
		n = len(ids)
		for _, table := range operationTables {
			if _, err := tx.Exec(ctx, sqldb.Named("delete operations", `DELETE FROM `+table+` WHERE id IN (`+sqldb.Placeholders(len(ids))+`)`), ids...); err != nil {
				return err
			}
		}
		return nil
	})
	return n, bytes, h.db.WrapError("purge the history of operations", err)
}

// PurgeOrphans deletes at most limit rows of what operations changed that belong to no operation any more: servers of an
// older release delete the operations only. It returns their number.
func (h *History) PurgeOrphans(ctx context.Context, limit int) (int, error) {
	var n int64
	err := h.db.WriteLowPriority(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		n = 0
		for _, table := range operationTables[:2] {
			deleted, err := tx.Exec(ctx, sqldb.Named("delete what belongs to no operation", fmt.Sprintf(`DELETE FROM %[1]s WHERE id IN (SELECT id FROM (SELECT x.id FROM %[1]s x
				LEFT JOIN operations o ON o.id = x.id WHERE o.id IS NULL LIMIT %[2]d) y)`, table, limit)))
			if err != nil {
				return err
			}
			n += deleted
		}
		return nil
	})
	return int(n), h.db.WrapError("purge the history of operations", err)
}
