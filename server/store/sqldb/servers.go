package sqldb

import (
	"context"
	"database/sql"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/lease"
)

// Sharing describes a process to the other servers that use the database at the same time.
type Sharing struct {
	URL         string // of its REST API
	PeerAddress string // where the others call it, host:port
	PublicKey   []byte // SHA-256 of the key with which it proves who it is
	Version     string // of the program
}

// ServerState is what a server that shares the database does.
type ServerState string

// The states. The values are stored.
const (
	ServerRunning  ServerState = "running"
	ServerDraining ServerState = "draining" // it stops, and gives up its accounts
)

// SharingServer is a server that shares the database.
type SharingServer struct {
	Sharing

	ID    vedette.ServerID
	Token string // of the process
	Host  string
	State ServerState
	// Started and Renewed are times of the database's clock, and so is Now, when the row was read.
	Started, Renewed, Now time.Time
}

// serversVersion is the version of the schema that introduced the table servers.
const serversVersion = 16

// IsShared reports whether other servers may use the database at the same time.
func (d *DB) IsShared() bool { return d.sharing != nil }

func selectServerLeases(d *Dialect, suffix string) Statement {
	return Named("read the leases of servers", `SELECT id, host, token, started, renewed, `+d.clockExpr+` FROM servers`+suffix)
}

// serversTable returns the row of this server in table servers.
func (l *databaseLease) serversTable(s Sharing) leaseTable {
	clock := l.db.Dialect.clockExpr
	return leaseTable{
		read:    selectServerLeases(&l.db.Dialect, ` WHERE id = ?`),
		renew:   Named("renew the lease of a server", `UPDATE servers SET renewed = `+clock+` WHERE id = ? AND token = ?`),
		release: Named("release the lease of a server", `DELETE FROM servers WHERE id = ? AND token = ?`),
		args:    []any{string(l.Server)},
		take:    func(ctx context.Context, tx *Tx) error { return l.takeOwnRow(ctx, tx, s) },
		blocks: func(row lease.Row) bool {
			return row.Table == lease.Exclusive || row.Server == string(l.Server)
		},
	}
}

// takeOwnRow writes the row of this server. A server that has used the database alone has ended, and finds that if it has not.
func (l *databaseLease) takeOwnRow(ctx context.Context, tx *Tx, s Sharing) error {
	if _, err := tx.Exec(ctx, Named("clear the lease", `UPDATE lease SET token = '' WHERE id = 1`)); err != nil {
		return err
	}
	if err := l.beginSharing(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, Named("delete the row of an earlier process", `DELETE FROM servers WHERE id = ?`), string(l.Server)); err != nil {
		return err
	}
	clock := tx.Dialect.clockExpr
	_, err := tx.Exec(ctx, Named("insert a server", `INSERT INTO servers (id, token, host, url, peer_address, public_key, version, schema_version, state, started, renewed)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, `+clock+`, `+clock+`)`), string(l.Server), l.Token, Sanitize(l.Host, MaxShort), Sanitize(s.URL, 1024),
		Sanitize(s.PeerAddress, 512), s.PublicKey, Sanitize(s.Version, MaxShort), l.db.knownSchema, string(ServerRunning))
	return err
}

// beginSharing records that servers which do not know the table servers cannot use the database.
func (l *databaseLease) beginSharing(ctx context.Context, tx *Tx) error {
	return l.setCompatibility(ctx, tx, serversVersion)
}

// endSharing deletes the rows of servers that shared the database, and lets earlier servers use it again.
func (l *databaseLease) endSharing(ctx context.Context, tx *Tx) error {
	if !l.db.hasServersTable {
		return nil
	}
	if _, err := tx.Exec(ctx, Named("delete the servers", `DELETE FROM servers`)); err != nil {
		return err
	}
	return l.setCompatibility(ctx, tx, serversVersion-1)
}

func (l *databaseLease) setCompatibility(ctx context.Context, tx *Tx, from int) error {
	_, err := tx.Exec(ctx, Named("record which servers can use the schema", `UPDATE schema_compatibility SET compatible_from = ? WHERE version = ? AND compatible_from <> ?`),
		from, serversVersion, from)
	return err
}

// SharingServers returns the servers that share the database, ordered by id, also those that have not renewed their rows for long. It reads
// over the connection that renews the lease, so that it does not wait for readers.
func (d *DB) SharingServers(ctx context.Context) ([]SharingServer, error) {
	if d.sharing == nil {
		return nil, nil
	}
	var servers []SharingServer
	err := d.withConn(ctx, d.renewals, func(ctx context.Context, conn *sql.Conn) error {
		servers = nil
		return queryEach(ctx, conn, &d.Dialect, func(rows *sql.Rows) error {
			s, err := scanServer(rows)
			servers = append(servers, s)
			return err
		}, Named("read the servers", `SELECT id, token, host, url, peer_address, public_key, version, state, started, renewed, `+d.Dialect.clockExpr+` FROM servers ORDER BY id`))
	})
	return servers, d.WrapError("read the servers", err)
}

func scanServer(row Scanner) (s SharingServer, err error) {
	var id, state string
	var started, renewed, now int64
	err = row.Scan(&id, &s.Token, &s.Host, &s.URL, &s.PeerAddress, &s.PublicKey, &s.Version, &state, &started, &renewed, &now)
	s.ID, s.State = vedette.ServerID(id), ServerState(state)
	s.Started, s.Renewed = FromMicros(started), FromMicros(renewed)
	s.Now = FromMicros(now)
	return s, err
}

// EvictServer deletes the row of a server that has not renewed it since it was read, and reports whether it did. The server then finds
// that its lease is lost, and writes nothing any more.
func (d *DB) EvictServer(ctx context.Context, s SharingServer) (evicted bool, err error) {
	n, err := d.ExecWrite(ctx, Named("evict a server", `DELETE FROM servers WHERE id = ? AND token = ? AND renewed = ?`), string(s.ID), s.Token,
		ToMicros(s.Renewed))
	return n > 0, d.WrapError("evict server "+string(s.ID), err)
}

// SetServerState records what this server does, for the others.
func (d *DB) SetServerState(ctx context.Context, state ServerState) error {
	if d.sharing == nil {
		return nil
	}
	_, err := d.ExecWrite(ctx, Named("record the state of a server", `UPDATE servers SET state = ? WHERE id = ? AND token = ?`), string(state),
		string(d.lease.Server), d.lease.Token)
	return d.WrapError("record that this server is "+string(state), err)
}

// ServerToken identifies this process among those that share the database; empty if it does not share it.
func (d *DB) ServerToken() string {
	if d.sharing == nil || d.lease == nil {
		return ""
	}
	return d.lease.Token
}
