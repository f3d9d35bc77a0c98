package sqldb

import (
	"context"
	"database/sql"
	"errors"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/lease"
)

// Shard is a further database, over which accounts are spread.
type Shard struct {
	Name     string // unique, and the same for ever
	URL      string // as Config.URL
	Replicas []string
}

// ShardsVersion is the version of the schema that introduced several databases.
const ShardsVersion = 20

// ShardConfig returns the configuration of a shard. The process has the same token in all databases.
func (c Config) ShardConfig(s Shard) Config {
	c.URL = s.URL
	c.Replicas = s.Replicas
	c.Shards = nil
	return c
}

// WithToken returns c with a token of this process, unless it has one.
func (c Config) WithToken() Config {
	if c.token == "" {
		c.token = lease.NewToken()
	}
	return c
}

// Name returns what a database is, for messages: its file, or its server and name.
func (d *DB) Name() string { return d.name }

// Inspect connects to a database, and calls use. It neither takes a lease nor migrates the schema. The errors are those of Open.
func Inspect(ctx context.Context, cfg Config, use func(ctx context.Context, d *DB) error) error {
	d, cfg := newDB(cfg)
	connect, err := connectFuncFor(cfg.URL)
	if err == nil {
		err = connect(ctx, d, cfg)
	}
	if err == nil {
		err = d.prepareConnected(ctx, cfg)
	}
	if err == nil {
		err = use(ctx, d)
	}
	return errors.Join(d.WrapError("open the database", err), d.Close())
}

// SchemaVersion returns the version of the schema; 0 for a database that is empty.
func (d *DB) SchemaVersion(ctx context.Context) (int64, error) { return d.storedVersion(ctx) }

// MigrateEmpty makes the schema of a database that is empty.
func (d *DB) MigrateEmpty(ctx context.Context) error { return d.migrate(ctx) }

// RequireVersion records from which version of the schema on a program must know it to use the database; from is at most that of version.
func (t *Tx) RequireVersion(ctx context.Context, version, from int64) error {
	_, err := t.Exec(ctx, Named("record which servers can use the schema", `UPDATE schema_compatibility SET compatible_from = ? WHERE version = ? AND compatible_from <> ?`),
		from, version, from)
	return err
}

// ServerTokens returns the tokens of the processes that share the database, as a transaction sees them.
func ServerTokens(ctx context.Context, tx *Tx) (map[string]bool, error) {
	tokens := map[string]bool{}
	err := tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var token string
		err := rows.Scan(&token)
		tokens[token] = true
		return err
	}, Named("read which servers there are", `SELECT token FROM servers`))
	return tokens, err
}

// EvictProcess deletes the row of a process that was evicted from another database.
func (d *DB) EvictProcess(ctx context.Context, id vedette.ServerID, token string) error {
	_, err := d.ExecWrite(ctx, Named("evict a process", `DELETE FROM servers WHERE id = ? AND token = ?`), string(id), token)
	return d.WrapError("evict server "+string(id), err)
}
