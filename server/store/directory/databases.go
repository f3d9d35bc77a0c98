package directory

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// First is the name of the first database, which knows the others.
const First = ""

// identity is what a database knows of itself.
type identity struct {
	uid      string // of the database
	firstUID string // of the first database, if it is one of the others; otherwise empty
	shard    string // its name, then
}

var errNoIdentity = errors.New("the database has no id yet")

func readIdentity(ctx context.Context, db *sqldb.DB) (id identity, err error) {
	err = db.QueryOne(ctx, sqldb.ScanInto(&id.uid, &id.firstUID, &id.shard),
		sqldb.Named("read the id of the database", `SELECT uid, first_uid, shard FROM installation WHERE id = 1`))
	if errors.Is(err, sql.ErrNoRows) {
		err = errNoIdentity
	}
	return id, err
}

// identify returns what a database knows of itself. It gives it an id if it has none.
func identify(ctx context.Context, db *sqldb.DB) (identity, error) {
	id, err := readIdentity(ctx, db)
	if !errors.Is(err, errNoIdentity) {
		return id, err
	}
	_, err = db.ExecWrite(ctx, sqldb.Named("give the database an id", `INSERT INTO installation (id, uid, first_uid, shard) VALUES (1, ?, '', '')`), rand.Text())
	if err != nil && !db.Dialect.IsUniqueViolation(err) { // another server was faster
		return id, err
	}
	return readIdentity(ctx, db)
}

// CheckAlone returns an error if a database belongs to several, which a server that knows only this one would take for whole. The
// error is vedette.Invalid. Others may be recorded that have no accounts.
func CheckAlone(ctx context.Context, db *sqldb.DB) error {
	var accounts int64
	var name, shard sql.NullString
	err := db.QueryOne(ctx, sqldb.ScanInto(&accounts, &name, &shard), sqldb.Named("read whether there are other databases",
		`SELECT (SELECT COUNT(*) FROM account_shards WHERE shard <> ''), (SELECT MIN(shard) FROM account_shards WHERE shard <> ''),
			(SELECT shard FROM installation WHERE id = 1 AND first_uid <> '')`))
	switch {
	case err != nil:
	case shard.Valid:
		err = isShardError(shard.String)
	case accounts > 0:
		err = vedette.Errorf(vedette.Invalid, "%d accounts are in other databases, of which sql.shards does not name %q: name all that the other servers name",
			accounts, name.String)
	}
	return db.WrapError("check whether this database is the only one", err)
}

func isShardError(name string) error {
	return vedette.Errorf(vedette.Invalid, "it is the database %q of sql.shards of an installation: name the first database of that in sql.url", name)
}

// Shards are databases beside the first.
type Shards struct {
	first identity
	uids  map[string]string // by name
}

// Begin identifies the first database.
func Begin(ctx context.Context, first *sqldb.DB) (*Shards, error) {
	id, err := identify(ctx, first)
	if err == nil && id.firstUID != "" {
		err = isShardError(id.shard)
	}
	return &Shards{first: id, uids: map[string]string{}}, first.WrapError("identify the first database", err)
}

// Claim verifies that a database belongs to this installation, or makes it so if it is empty. It makes its schema if it has none. It is not
// safe for concurrent use.
func (s *Shards) Claim(ctx context.Context, name string, db *sqldb.DB) error {
	id, err := s.claim(ctx, name, db)
	if err != nil {
		return fmt.Errorf("verify that it belongs to this installation: %w", err)
	}
	s.uids[name] = id.uid
	return nil
}

func (s *Shards) claim(ctx context.Context, name string, db *sqldb.DB) (identity, error) {
	if err := prepareSchema(ctx, db); err != nil {
		return identity{}, err
	}
	id, err := identify(ctx, db)
	if err != nil {
		return id, err
	}
	if id.firstUID == "" && id.uid != s.first.uid {
		if err := checkUnused(ctx, db); err != nil {
			return id, err
		}
		if _, err := db.ExecWrite(ctx, sqldb.Named("claim a database", `UPDATE installation SET first_uid = ?, shard = ? WHERE id = 1 AND first_uid = ''`), s.first.uid, name); err != nil {
			return id, err
		}
		if id, err = readIdentity(ctx, db); err != nil { // another server may have been faster
			return id, err
		}
	}
	for other, uid := range s.uids {
		if uid == id.uid {
			return id, vedette.Errorf(vedette.Invalid, "it is the same as %s: remove one of them", other)
		}
	}
	return id, s.verify(name, id)
}

// verify compares what a database knows of itself.
func (s *Shards) verify(name string, id identity) error {
	switch {
	case id.uid == s.first.uid:
		return vedette.Errorf(vedette.Invalid, "it is the database of sql.url: remove it from sql.shards")
	case id.firstUID != s.first.uid:
		return vedette.Errorf(vedette.Invalid, "it belongs to another installation: give this one a database of its own")
	case id.shard != name:
		return vedette.Errorf(vedette.Invalid, "it is known as %s, and the name of a database does not change: call it that", id.shard)
	}
	return nil
}

// prepareSchema makes the schema of a database without accounts. Another server may be doing that.
func prepareSchema(ctx context.Context, db *sqldb.DB) error {
	version, err := db.SchemaVersion(ctx)
	if err != nil || version >= sqldb.ShardsVersion {
		return err
	}
	if version > 0 {
		accounts := 0
		if err := db.QueryOne(ctx, sqldb.ScanInto(&accounts), countAccounts); err != nil {
			return err
		}
		if accounts > 0 {
			return otherInstallation(accounts)
		}
	}
	return db.MigrateEmpty(ctx)
}

var countAccounts = sqldb.Named("count the accounts", `SELECT COUNT(*) FROM accounts`)

func otherInstallation(accounts int) error {
	return vedette.Errorf(vedette.Invalid, "it has %d accounts of another installation, or of a backup: sql.shards must name an empty database", accounts)
}

// checkUnused returns an error if a database that belongs to nobody is in use.
func checkUnused(ctx context.Context, db *sqldb.DB) error {
	var accounts, servers, shards int
	err := db.QueryOne(ctx, sqldb.ScanInto(&accounts, &servers, &shards), sqldb.Named("read whether the database is used", `SELECT (SELECT COUNT(*) FROM accounts),
		(SELECT COUNT(*) FROM servers) + (SELECT COUNT(*) FROM lease WHERE token <> ''), (SELECT COUNT(*) FROM shards WHERE name <> '')`))
	switch {
	case err != nil:
		return err
	case accounts > 0:
		return otherInstallation(accounts)
	case servers > 0:
		return vedette.Errorf(vedette.Invalid, "a server uses it as its first database: give this installation another one, or stop that server")
	case shards > 0:
		return vedette.Errorf(vedette.Invalid, "it is the first of several databases of another installation: give this one a database of its own")
	}
	return nil
}

// lockShards writes or reads the row of the first database, so that transactions that concern the list of databases, or new
// accounts, exclude each other.
func lockShards(ctx context.Context, tx *sqldb.Tx) error {
	if err := tx.WriteToLock(ctx, sqldb.Named("write the lock of the databases", `UPDATE shards SET locks = locks + 1 WHERE name = ''`)); err != nil {
		return err
	}
	var uid string
	return tx.QueryRow(ctx, sqldb.Named("lock the databases", `SELECT uid FROM shards WHERE name = ''`+tx.Dialect.ForUpdate)).Scan(&uid)
}

// Record makes the databases that were claimed those that the first knows, and enters its own accounts. The error is
// vedette.Invalid if one was replaced, or is left out and has accounts.
func (s *Shards) Record(ctx context.Context, first *sqldb.DB) error {
	const action = "record the databases of sql.shards"
	_, err := first.ExecWrite(ctx, sqldb.Named("record the first database", `INSERT INTO shards (name, uid)
		SELECT '', uid FROM installation WHERE id = 1 AND NOT EXISTS (SELECT 1 FROM shards WHERE name = '')`))
	if err != nil && !first.Dialect.IsUniqueViolation(err) {
		return first.WrapError(action, err)
	}
	return first.WrapError(action, first.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		if err := lockShards(ctx, tx); err != nil {
			return err
		}
		if err := s.record(ctx, tx); err != nil {
			return err
		}
		if err := tx.RequireVersion(ctx, sqldb.ShardsVersion, sqldb.ShardsVersion); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sqldb.Named("enter the accounts of the first database", `INSERT INTO account_shards (name, shard) SELECT DISTINCT n.name, '' FROM
			(SELECT name FROM accounts WHERE name IS NOT NULL UNION SELECT retired FROM accounts WHERE retired IS NOT NULL) n
			WHERE NOT EXISTS (SELECT 1 FROM account_shards s WHERE s.name = n.name)`))
		return err
	}))
}

func (s *Shards) record(ctx context.Context, tx *sqldb.Tx) error {
	recorded := map[string]string{}
	err := tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var name, uid string
		err := rows.Scan(&name, &uid)
		recorded[name] = uid
		return err
	}, sqldb.Named("read the databases", `SELECT name, uid FROM shards WHERE name <> ''`))
	if err != nil {
		return err
	}
	for name, uid := range recorded {
		switch claimed, isNamed := s.uids[name]; {
		case !isNamed:
			if err := leaveOut(ctx, tx, name); err != nil {
				return err
			}
		case claimed != uid:
			return vedette.Errorf(vedette.Invalid, "database %s of sql.shards is another one than before: name the former one, "+
				"or restore its backup, or give a new database a new name after all accounts of this one are removed", name)
		}
	}
	for name, uid := range s.uids {
		if recorded[name] != "" {
			continue
		}
		if _, err := tx.Exec(ctx, sqldb.Named("record a database", `INSERT INTO shards (name, uid) VALUES (?, ?)`), name, uid); err != nil {
			return err
		}
	}
	return nil
}

// leaveOut forgets a database, which must have no accounts.
func leaveOut(ctx context.Context, tx *sqldb.Tx, name string) error {
	accounts := 0
	if err := tx.QueryRow(ctx, sqldb.Named("count the accounts of a database", `SELECT COUNT(*) FROM account_shards WHERE shard = ?`), name).Scan(&accounts); err != nil {
		return err
	}
	if accounts > 0 {
		return vedette.Errorf(vedette.Invalid, "sql.shards does not name the database %s, which has %d accounts: name it, or remove these accounts first", name, accounts)
	}
	_, err := tx.Exec(ctx, sqldb.Named("forget a database", `DELETE FROM shards WHERE name = ?`), name)
	return err
}
