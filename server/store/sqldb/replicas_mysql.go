package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/vedette-io/vedette"
)

// openMySQLReplica opens a node of a Galera cluster. Other replicas of MariaDB and MySQL are refused: their positions can be compared with
// the primary's only if binary logs are written, and these may continue another history after a failover.
func openMySQLReplica(_ context.Context, d *DB, address string, maxConns int) (*replica, bool, error) {
	config, err := readMySQLConfig(d, address)
	if err != nil {
		return nil, false, err
	}
	config.ReadTimeout, config.WriteTimeout = minTimeout(config.ReadTimeout, queryTimeout), minTimeout(config.WriteTimeout, queryTimeout)
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, false, errMySQLSettings
	}
	db := sql.OpenDB(galeraConnector{timeoutConnector{connector}, d})
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	db.SetConnMaxIdleTime(IdleTimeout / 2)
	d.cleanup = append(d.cleanup, db.Close)
	return &replica{pool: db, await: awaitGaleraNode}, false, nil
}

// galeraConnector opens connections to a node of the same Galera cluster as the primary, whose reads wait until the node has all commits.
type galeraConnector struct {
	driver.Connector

	db *DB
}

// Connect implements driver.Connector.
func (c galeraConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.prepare(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (c galeraConnector) prepare(ctx context.Context, conn driver.Conn) error {
	queryer := conn.(driver.QueryerContext)
	isGalera, err := isGaleraNode(ctx, queryer)
	if err != nil {
		return err
	}
	if !isGalera {
		return vedette.Errorf(vedette.Invalid, "it is no node of a Galera cluster: replicas of MariaDB and MySQL cannot be read otherwise")
	}
	id, err := queryValue(ctx, queryer, selectClusterState)
	if err == nil {
		err = c.db.history.checkReplica(id)
	}
	if err != nil {
		return fmt.Errorf("check the cluster: %w", err)
	}
	for _, setting := range []string{`SET SESSION ` + syncWait + ` = 1`, `SET SESSION TRANSACTION READ ONLY`} {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, setting, nil); err != nil {
			return err
		}
	}
	return nil
}

// awaitGaleraNode lets the node wait. Its setting makes each read do so.
func awaitGaleraNode(ctx context.Context, conn *sql.Conn, _ string) error {
	var one int
	return conn.QueryRowContext(ctx, `SELECT 1`).Scan(&one)
}
