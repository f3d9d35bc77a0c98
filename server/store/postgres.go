package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// postgresDialect uses one array per column for any number of rows, so that one plan serves
// batches of all sizes.
func postgresDialect() dialect {
	return dialect{
		name:              "PostgreSQL",
		migrations:        migrations("postgres"),
		priorityChunkSize: 256, // a smaller transaction waits longer for the disk than it writes
		goose:             goose.DialectPostgres,
		gooseLock:         postgresLock,
		numberedParams:    true,
		arrayParams:       true,
		planEach:          pgx.QueryExecModeCacheDescribe,
		orderedJoin:       "JOIN", // its planner chooses the right order
		purgeStatement:    purgeByIDStatement,
		clockExpr:         `(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint`,
		emptyBytes:        "''",
		hexExpr:           "UPPER(ENCODE(?, 'hex'))",
		ownedTables:       postgresOwnedTables,
		concatBytes:       func(columns ...string) string { return strings.Join(columns, " || ") },
		forUpdate:         " FOR UPDATE",
		isolation:         sql.LevelReadCommitted,
		lookup:            postgresLookup,
		upsert:            postgresUpsert,
		remove:            postgresRemove,
		insert:            postgresInsert,
		onConflictUpdate:  onConflictClause,
		onConflictAdd:     onConflictAddClause,
		size:              postgresSize,
		translateError:    translatePostgresError,
		isRetryable:       isPostgresRetryable,
		isReadOnly:        isPostgresReadOnly,
		isUniqueViolation: isPostgresUniqueViolation,
	}
}

// postgresOwnedTables has OFFSET 0, which keeps the planner from joining in another way than by the
// index: depending on its statistics it read the whole table, which took 230 ms instead of 18.
const postgresOwnedTables = `objects p CROSS JOIN LATERAL (SELECT c.account_id, c.kind_id, c.namespace, c.name, c.uid, c.owner, c.labelset, c.attributes, c.application
	FROM objects c WHERE c.owner = p.uid AND c.account_id + 0 = p.account_id AND c.owner <> '' OFFSET 0) o`

func postgresLock() ([]goose.ProviderOption, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // tries every second for 5 minutes
	return []goose.ProviderOption{goose.WithSessionLocker(locker)}, err
}

func connectPostgres(ctx context.Context, s *Store, cfg Config) error {
	s.dialect = postgresDialect()
	config, err := postgresConfig(cfg.URL)
	if err != nil {
		return err
	}
	// The locks of a lost connection are released after this time. Our transactions are
	// never idle.
	setDefault(config.ConnConfig.RuntimeParams, "idle_in_transaction_session_timeout", "10s")
	config.ShouldPing = isConnClosed
	config.MaxConns = int32(min(cfg.MaxConns, 10_000)) //nolint:gosec // limited to 10,000
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("create a connection pool: %w", err)
	}
	s.cleanup = append(s.cleanup, func() error { pool.Close(); return nil })
	s.db = stdlib.OpenDBFromPool(pool)
	s.db.SetMaxIdleConns(0) // the pool of pgx keeps them
	s.reader, s.migrator = s.db, s.db
	s.closeIdleConns = pool.Reset
	s.cleanup = append(s.cleanup, s.db.Close)
	return nil
}

// postgresConfig returns the driver's settings of a URL. Without a timeout of ours, the pool opens a connection for up to
// two minutes, and whoever needs it waits: the database may have been frozen for a moment and never answer it.
func postgresConfig(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, explainPostgresURL(url)
	}
	config.ConnConfig.ConnectTimeout = minTimeout(config.ConnConfig.ConnectTimeout, dialTimeout)
	return config, nil
}

// isConnClosed reports whether the server has closed an idle connection; the ping that follows
// then removes it. A connection that was lost without notice is not pinged: withTimeout notices
// that, and closes all idle connections.
func isConnClosed(_ context.Context, p pgxpool.ShouldPingParams) bool {
	//nolint:staticcheck // SA1019: Ping, the recommended replacement, waits for a server that does not answer; CheckConn does not.
	return p.IdleDuration > time.Second && p.Conn.PgConn().CheckConn() != nil
}

func setDefault(settings map[string]string, name, value string) {
	if _, exists := settings[name]; !exists {
		settings[name] = value
	}
}

// keyArrays returns one array per column of keys.
func keyArrays(keys []rowKey) (kinds []int64, namespaces, names []string) {
	kinds, namespaces, names = make([]int64, len(keys)), make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		kinds[i], namespaces[i], names[i] = k.kindID, k.namespace, k.name
	}
	return kinds, namespaces, names
}

func postgresLookup(ctx context.Context, s *Store, accountID int64, keys []rowKey, found func(storedRow)) error {
	if len(keys) == 0 {
		return nil
	}
	kinds, namespaces, names := keyArrays(keys)
	return s.queryEach(ctx, scanStored(found), `SELECT `+lookupColumns+`
		FROM unnest($2::integer[], $3::text[], $4::text[]) AS k (kind_id, namespace, name)
		CROSS JOIN LATERAL (SELECT * FROM objects o
			WHERE o.account_id = $1 AND o.kind_id = k.kind_id AND o.namespace = k.namespace AND o.name = k.name LIMIT 1) o
		LEFT JOIN labelsets l ON l.id = o.labelset`, accountID, kinds, namespaces, names)
}

func postgresRemove(ctx context.Context, tx *transaction, accountID int64, keys []rowKey) error {
	if len(keys) == 0 {
		return nil
	}
	kinds, namespaces, names := keyArrays(keys)
	_, err := tx.ExecContext(ctx, `DELETE FROM objects o USING unnest($2::integer[], $3::text[], $4::text[]) AS k (kind_id, namespace, name)
		WHERE o.account_id = $1 AND o.kind_id = k.kind_id AND o.namespace = k.namespace AND o.name = k.name`, accountID, kinds, namespaces, names)
	if err != nil {
		return fmt.Errorf("delete %d rows: %w", len(keys), err)
	}
	return nil
}

const postgresUpsertStatement = `INSERT INTO objects (account_id, stored, kind_id, namespace, name, labelset, uid, version, application, cluster, owner,
		attributes, head, body)
	SELECT $1, $2, * FROM unnest($3::integer[], $4::text[], $5::text[], $6::bigint[], $7::bytea[], $8::text[], $9::text[], $10::text[],
		$11::bytea[], $12::bytea[], $13::bytea[], $14::bytea[])
	ON CONFLICT (account_id, kind_id, namespace, name) DO UPDATE SET labelset = excluded.labelset, stored = excluded.stored,
		uid = excluded.uid, version = excluded.version, application = excluded.application, cluster = excluded.cluster, owner = excluded.owner,
		attributes = excluded.attributes, head = excluded.head, body = excluded.body`

func postgresUpsert(ctx context.Context, tx *transaction, accountID int64, rows []objectRow) error {
	if len(rows) == 0 {
		return nil
	}
	n := len(rows)
	kinds, namespaces, names, sets := make([]int64, n), make([]string, n), make([]string, n), make([]int64, n)
	versions, applications, clusters := make([]string, n), make([]string, n), make([]string, n)
	uids, owners, attributes := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	heads, bodies := make([][]byte, n), make([][]byte, n)
	for i := range rows {
		r := &rows[i]
		kinds[i], namespaces[i], names[i], sets[i] = r.kindID, r.namespace, r.name, r.labelset
		uids[i], versions[i], applications[i], clusters[i] = r.uid, r.version, r.application, r.cluster
		owners[i], attributes[i], heads[i], bodies[i] = r.owner, r.attributes, r.head, r.body
	}
	if _, err := tx.ExecContext(ctx, postgresUpsertStatement, accountID, toMicros(tx.now), kinds, namespaces, names, sets, uids, versions,
		applications, clusters, owners, attributes, heads, bodies); err != nil {
		return fmt.Errorf("upsert %d rows: %w", n, err)
	}
	return nil
}

func postgresInsert(ctx context.Context, tx *transaction, table string, columns []columnSpec, rows [][]any, conflictClause string) error {
	if len(rows) == 0 {
		return nil
	}
	names, types, arrays := make([]string, len(columns)), make([]string, len(columns)), make([]any, len(columns))
	for i, c := range columns {
		names[i], types[i], arrays[i] = c.name, fmt.Sprintf("$%d::%s[]", i+1, c.pgType), arrayOf(rows, i)
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO `+table+` (`+strings.Join(names, ", ")+`) SELECT * FROM unnest(`+strings.Join(types,
		", ")+`)`+conflictClause, arrays...)
	if err != nil {
		return fmt.Errorf("insert %d rows into %s: %w", len(rows), table, err)
	}
	return nil
}

// arrayOf returns the values of a column, which are all int64 or all string.
func arrayOf(rows [][]any, column int) any {
	if _, ok := rows[0][column].(string); ok {
		return columnValues[string](rows, column)
	}
	return columnValues[int64](rows, column)
}

func columnValues[T any](rows [][]any, column int) []T {
	values := make([]T, len(rows))
	for i, r := range rows {
		values[i], _ = r[column].(T)
	}
	return values
}

func postgresSize(ctx context.Context, db *sql.DB) (size int64, err error) {
	err = db.QueryRowContext(ctx, `SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
		WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace`).Scan(&size)
	return size, err
}
