package write

import (
	"context"

	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// writeDialect is what differs between the databases when objects are written.
type writeDialect struct {
	priorityChunkSize int // objects per commit while an operation is in progress; they take some milliseconds
	// lookup calls found once for each of those keys that are stored.
	lookup func(ctx context.Context, db *sqldb.DB, accountID int64, keys []catalog.Key, found func(storedRow)) error
	// upsert writes rows, which are sorted by key.
	upsert func(ctx context.Context, tx *sqldb.Tx, accountID int64, rows []objectRow) error
	// remove deletes the rows of keys, which are sorted.
	remove func(ctx context.Context, tx *sqldb.Tx, accountID int64, keys []catalog.Key) error
	// storeMarks writes the marks that are held of accounts, which are locked, in place of those that were stored.
	storeMarks func(ctx context.Context, tx *sqldb.Tx, all []heldAccount) error
	// onConflictAdd returns the clause with which an insert adds to columns of an existing row
	// with the same key.
	onConflictAdd func(table string, key, columns []string) string
	// prepare prepares the statements of each commit after the schema is migrated; may be nil.
	prepare func(ctx context.Context, db *sqldb.DB) error
}

func writeDialectOf(name string) writeDialect {
	switch name {
	case sqldb.PostgreSQL:
		return writeDialect{
			priorityChunkSize: 256, // a smaller transaction waits longer for the disk than it writes
			lookup:            postgresLookup,
			upsert:            postgresUpsert,
			remove:            postgresRemove,
			storeMarks:        postgresStoreMarks,
			onConflictAdd:     onConflictAddClause,
		}
	case sqldb.MySQL:
		w := &mysqlStatements{maxBytes: 1 << 20}
		return writeDialect{
			priorityChunkSize: 256, // a smaller transaction waits longer for the disk than it writes
			lookup:            mysqlLookup,
			upsert:            w.upsert,
			remove:            mysqlRemove,
			storeMarks:        storeMarksSingly,
			onConflictAdd:     onDuplicateKeyAddClause,
			prepare:           w.prepare,
		}
	}
	return writeDialect{
		priorityChunkSize: 64,
		lookup:            sqliteLookup,
		upsert:            sqliteUpsert,
		remove:            sqliteRemove,
		storeMarks:        storeMarksSingly,
		onConflictAdd:     onConflictAddClause,
		prepare:           sqlitePrepare,
	}
}

// statementSizes are the numbers of rows that statements write, so that there are few different
// statements.
var statementSizes = []int{128, 32, 8, 2, 1}

// largestSizeWithin returns the largest statement size up to both n and limit.
func largestSizeWithin(n, limit int) int {
	for _, size := range statementSizes {
		if size <= n && size <= limit {
			return size
		}
	}
	return 1
}

// smallestSizeFor returns the smallest statement size for n rows, or the largest size of all if n
// is larger.
func smallestSizeFor(n int) int {
	for i := len(statementSizes) - 1; i > 0; i-- {
		if statementSizes[i] >= n {
			return statementSizes[i]
		}
	}
	return statementSizes[0]
}
