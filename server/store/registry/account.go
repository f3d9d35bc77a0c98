package registry

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/batch"
	"github.com/vedette-io/vedette/server/store/admission"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/versions"
	"github.com/vedette-io/vedette/server/store/writethrough"
)

var (
	// ErrTerm means that another agent has replaced the writer.
	ErrTerm = vedette.Errorf(vedette.Conflict, "another agent has taken over the account")
	// ErrNoAccount means that the account is not registered, or no longer.
	ErrNoAccount = vedette.Errorf(vedette.NotFound, "the account is not registered")
	// ErrOvertaken means that another server has acquired the account since it was read.
	ErrOvertaken = vedette.Errorf(vedette.Conflict, "another server has acquired the account meanwhile")
)

// Registry keeps the accounts: which cluster each of them is, and which agent reports it. Its methods may be called
// concurrently.
type Registry struct {
	db           *sqldb.DB
	versions     *versions.Versions
	names        *catalog.Accounts
	locks        *admission.Locks
	writeThrough *writethrough.State
	process      string // which the accounts follow that are as fresh as most, see RecordSharedFreshness

	known        *batch.Line[vedette.AccountName, Account] // reads accounts that agents register
	acquisitions *batch.Line[acquisition, vedette.Term]
}

// Parts are what a Registry shares with other parts of the store.
type Parts struct {
	DB           *sqldb.DB
	Versions     *versions.Versions
	Accounts     *catalog.Accounts
	Locks        *admission.Locks
	WriteThrough *writethrough.State
}

// New returns the registry of a database.
func New(p Parts) *Registry {
	r := &Registry{db: p.DB, versions: p.Versions, names: p.Accounts, locks: p.Locks, writeThrough: p.WriteThrough, process: rand.Text()}
	r.known = batch.New(Together(r.readMany, r.Account))
	r.acquisitions = batch.New(Together(r.acquireMany, r.acquireAlone))
	return r
}

// Prepare prepares what runs in each operation: SQLite takes as long to parse it as to execute it.
func (r *Registry) Prepare(ctx context.Context) error {
	if r.db.Dialect.Name != sqldb.SQLite {
		return nil
	}
	return errors.Join(r.db.Prepare(ctx, sqldb.WritePool, sqldb.Named("lock the account", selectTerm)), r.db.Prepare(ctx, sqldb.ReadPool,
		selectAccount))
}

// The statements that write what they lock, see sqldb.Tx.WriteToLock. Whoever gives an account another term or holder writes the
// account's row too, and whoever registers an account the counter.
var (
	writeAccountLock      = sqldb.Named("write the lock of the account", `UPDATE accounts SET locks = locks + 1 WHERE name = ?`)
	writeAccountLockByID  = sqldb.Named("write the lock of the account by its id", `UPDATE accounts SET locks = locks + 1 WHERE id = ?`)
	writeRegistrationLock = sqldb.Named("write the lock of registrations", `INSERT INTO counters (name, value) VALUES ('registrations', 1)
		ON DUPLICATE KEY UPDATE value = value + 1`)
)

// LockAccountRow locks the account's row until the transaction ends, and returns the account's id.
// The error is ErrTerm if another agent has taken the account.
func LockAccountRow(ctx context.Context, tx *sqldb.Tx, account vedette.AccountName, term vedette.Term) (int64, error) {
	if err := tx.WriteToLock(ctx, writeAccountLock, string(account)); err != nil {
		return 0, err
	}
	var id, stored int64
	err := tx.QueryRow(ctx, sqldb.Named("lock the account", selectTerm+tx.Dialect.ForUpdate), string(account)).Scan(&id, &stored)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ErrNoAccount
	}
	if err == nil && stored != int64(term) {
		return 0, ErrTerm
	}
	return id, err
}

// LockAccountRowByID is LockAccountRow for callers that only wait for other transactions.
func LockAccountRowByID(ctx context.Context, tx *sqldb.Tx, id int64) error {
	if err := tx.WriteToLock(ctx, writeAccountLockByID, id); err != nil {
		return err
	}
	var term int64
	err := tx.QueryRow(ctx, sqldb.Named("lock the account by its id", `SELECT term FROM accounts WHERE id = ?`+tx.Dialect.ForUpdate), id).Scan(&term)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNoAccount
	}
	return err
}

// Register creates an account as an agent reports it, and returns the stored account. An account
// that exists stays unchanged, because only its cacher may change it, see Acquire. A name belongs
// to the first cluster that registers it: for any other cluster the error is vedette.Conflict,
// which names both clusters and so is for operators only.
func (r *Registry) Register(ctx context.Context, a vedette.Account) (Account, error) {
	action := "register account " + string(a.Name)
	if err := a.Name.Validate(); err != nil {
		return Account{}, err
	}
	// Most accounts exist: agents register all of theirs each time they connect. The row is not locked for that, because whoever acquires
	// the account after this compares its term.
	stored, err := r.known.Do(ctx, a.Name)
	if err == nil && stored.Cluster.Same(a.Cluster) || err != nil && !errors.Is(err, ErrNoAccount) {
		return stored, err
	}
	columns, err := accountColumns(a)
	if err != nil {
		return Account{}, fmt.Errorf("%s: %w", action, err)
	}
	// If two agents register a new name at the same time, one finds the row of the other on its second try.
	var done registration
	write := func(ctx context.Context, tx *sqldb.Tx) (err error) {
		done, err = register(ctx, tx, a, columns)
		return err
	}
	err = r.db.Write(ctx, write)
	if err != nil && vedette.KindOf(err) == "" {
		r.versions.PublishUncertain(versions.AccountEffect(a.Name, true)) // the second try may find the account of the first
		err = r.db.Write(ctx, write)
	}
	if done != registrationExists {
		r.versions.PublishOutcome(versions.AccountEffect(a.Name, done == registrationRevives), err)
	}
	if err != nil {
		return Account{}, r.db.WrapError(action, err)
	}
	r.versions.Settle(a.Name)
	r.versions.AccountLog.Note(a.Name)
	return r.Account(ctx, a.Name)
}

func accountColumns(a vedette.Account) ([]any, error) {
	properties, err := json.Marshal(a.Properties)
	if err != nil {
		return nil, err
	}
	var namespaces any
	if a.Namespaces != nil {
		text, err := json.Marshal(a.Namespaces)
		if err != nil {
			return nil, err
		}
		namespaces = string(text)
	}
	const maxBytes = 4096
	return []any{sqldb.Sanitize(a.Cluster.UID, maxBytes), sqldb.Sanitize(a.Cluster.Host, maxBytes), sqldb.Sanitize(a.Cluster.Fingerprint,
		maxBytes),
		sqldb.Sanitize(a.Cluster.Version, maxBytes),
		string(properties), namespaces}, nil
}

// registration is what a call of register does.
type registration int

const (
	registrationExists registration = iota // nothing
	registrationInserts
	registrationRevives
)

func register(ctx context.Context, tx *sqldb.Tx, a vedette.Account, columns []any) (registration, error) {
	known, err := findCluster(ctx, tx, a.Name)
	if err == nil && !known.Same(a.Cluster) {
		return registrationExists, NameConflict(a, known)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return registrationExists, err
	}
	if err := checkSimilarNames(ctx, tx, a.Name); err != nil {
		return registrationExists, err
	}
	if revived, err := revive(ctx, tx, a); revived || err != nil {
		return registrationRevives, err
	}
	_, err = tx.Exec(ctx, sqldb.Named("insert an account", `INSERT INTO accounts (cluster_uid, host, fingerprint, version, properties, namespaces, name, registered, last_seen, orphaned, shape, holder, server, term)
		SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', '', value FROM counters WHERE name = 'term'`),
		append(columns, string(a.Name), sqldb.ToMicros(tx.Now), sqldb.ToMicros(tx.Now), sqldb.ToMicros(tx.Now))...)
	return registrationInserts, err
}

// NameConflict is the error of an account whose name belongs to another cluster.
func NameConflict(a vedette.Account, known vedette.Cluster) error {
	return vedette.Errorf(vedette.Conflict,
		"the account name %s belongs to %s, and an agent wants to register %s under it: give one of them another name, or give this name to the second with `vedette accounts accept %s`", a.Name, known, a.Cluster, a.Name)
}

// checkSimilarNames rejects a new account that other services take for one that exists. Whoever may
// register accounts could open the existing one by it. Accounts that exist stay as they are.
func checkSimilarNames(ctx context.Context, tx *sqldb.Tx, name vedette.AccountName) error {
	// The lock makes new accounts wait for each other. Without it, two similar names that are registered at the
	// same moment do not see each other. The row exists since the first migration, and new accounts read it anyway.
	if err := tx.WriteToLock(ctx, writeRegistrationLock); err != nil {
		return err
	}
	var term int64
	if err := tx.QueryRow(ctx, sqldb.Named("lock the counter of terms", `SELECT value FROM counters WHERE name = 'term'`+tx.Dialect.ForUpdate)).Scan(&term); err != nil {
		return err
	}
	folded := name.Folded()
	return tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var other string
		if err := rows.Scan(&other); err != nil {
			return err
		}
		return CheckSimilar(name, folded, vedette.AccountName(other))
	}, selectAccountNames)
}

// CheckSimilar rejects the name of a new account, which is given folded too, if other services take it for that of another account.
func CheckSimilar(name vedette.AccountName, folded string, other vedette.AccountName) error {
	if other != name && other.Folded() == folded {
		return vedette.Errorf(vedette.Conflict, "the account name %q is too similar to that of the account %q: Gate, Orca and Fiat ignore case, and the "+
			"permissions of one account would apply to the other: give the new account another name in its agent's configuration", name, other)
	}
	return nil
}

func findCluster(ctx context.Context, tx *sqldb.Tx, name vedette.AccountName) (c vedette.Cluster, err error) {
	err = tx.QueryRow(ctx, sqldb.Named("find the cluster of an account", `SELECT cluster_uid, host, fingerprint, version FROM accounts WHERE name = ?`+tx.Dialect.ForUpdate), string(name)).
		Scan(&c.UID, &c.Host, &c.Fingerprint, &c.Version)
	return c, err
}

// revive gives a retired account of the same cluster its name back, and reports whether there was
// one. It raises the term, because other accounts may have had the name in between and no term may
// be used twice.
func revive(ctx context.Context, tx *sqldb.Tx, a vedette.Account) (bool, error) {
	var found, id int64
	err := tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var c vedette.Cluster
		err := rows.Scan(&id, &c.UID, &c.Host, &c.Fingerprint)
		if c.Same(a.Cluster) {
			found = id
		}
		return err
	}, sqldb.Named("find a retired account", `SELECT id, cluster_uid, host, fingerprint FROM accounts WHERE retired = ?`), string(a.Name))
	if err != nil || found == 0 {
		return false, err
	}
	n, err := tx.Exec(ctx, sqldb.Named("restore a retired account", `UPDATE accounts SET name = retired, retired = NULL, orphaned = ?,
		term = (SELECT CASE WHEN value > term THEN value ELSE term END FROM counters WHERE name = 'term') WHERE id = ? AND retired IS NOT NULL`), sqldb.ToMicros(tx.Now), found)
	return n > 0, err
}

// invalidateObjects makes the account's next snapshot report every object again: feeds lose their
// marks and objects their versions. Readers still see the objects.
func invalidateObjects(ctx context.Context, tx *sqldb.Tx, accountID int64) error {
	if _, err := tx.Exec(ctx, sqldb.Named("clear the marks of an account", `UPDATE feeds SET mark = '', previous_mark = '' WHERE account_id = ?`), accountID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, sqldb.Named("clear the versions of the objects", `UPDATE objects SET version = '' WHERE account_id = ?`), accountID)
	return err
}

// CacherClaim is an agent that becomes an account's cacher.
type CacherClaim struct {
	Agent  vedette.AgentID
	Server vedette.ServerID // to which the agent is connected
	Shape  string           // in which the agent reports objects, see vedette.Account
	// Account is what the agent reports about the account and its cluster. It replaces
	// what is stored; nil keeps that.
	Account *vedette.Account
	// KeepPermissions keeps the stored permissions instead of those of Account.
	KeepPermissions bool
	// KeepNamespaces keeps the stored namespaces.
	KeepNamespaces bool
	// After is the term that the account must have; nil if any will do. Otherwise the error is ErrOvertaken.
	After *vedette.Term
}

// Acquire makes an agent the account's only cacher. After it returns, writes of the previous
// holder fail because of their term. If the agent has another shape, all marks and versions are
// cleared, so that it reports all objects again. Readers see live feeds as pending until the new cacher
// reports them live, because it may not reach the cluster.
//
// If several are to be acquired at once, that takes one transaction for those of which nothing but the cacher changes. Each
// has its own outcome.
func (r *Registry) Acquire(ctx context.Context, account vedette.AccountName, h CacherClaim) (vedette.Term, error) {
	defer r.versions.AccountLog.Note(account)
	return r.acquisitions.Do(ctx, acquisition{account, h})
}

// acquireAlone is Acquire in a transaction of its own.
func (r *Registry) acquireAlone(ctx context.Context, a acquisition) (vedette.Term, error) {
	account, h := a.account, a.CacherClaim
	var term int64
	var changed bool
	err := r.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) (err error) {
		term, changed, err = acquire(ctx, tx, account, h)
		return err
	})
	if changed {
		r.versions.PublishOutcome(versions.AccountEffect(account, false), err)
	}
	if err != nil {
		return 0, r.db.WrapError("acquire account "+string(account), err)
	}
	r.versions.Settle(account)
	return vedette.Term(term), nil
}

// acquire takes three statements if nothing but the cacher changes, however many feeds the account has: when a server ends, thousands of
// accounts are acquired at once.
func acquire(ctx context.Context, tx *sqldb.Tx, account vedette.AccountName, h CacherClaim) (term int64, changed bool, err error) {
	row, err := lockAcquired(ctx, tx, account)
	if err != nil {
		return 0, false, err
	}
	if h.After != nil && row.term != int64(*h.After) {
		return 0, false, ErrOvertaken
	}
	if row.shape != h.Shape {
		if err := invalidateObjects(ctx, tx, row.id); err != nil {
			return 0, false, err
		}
	}
	if err := resumeFreshness(ctx, tx, []winner{{acquiredRow: row}}); err != nil {
		return 0, false, err
	}
	changed, err = row.storeDetails(ctx, tx, h)
	if err != nil {
		return 0, false, err
	}
	term = row.term + 1
	_, err = tx.Exec(ctx, sqldb.Named("assign a cacher", `UPDATE accounts SET term = ?, resumed_term = ?, holder = ?, server = ?, shape = ?, last_seen = ?, orphaned = 0 WHERE id = ?`),
		term, term, string(h.Agent), string(h.Server), h.Shape, sqldb.ToMicros(tx.Now), row.id)
	return term, changed, err
}

// acquiredRow is the row of an account that an agent acquires.
type acquiredRow struct {
	id, term, freshness                                                   int64
	name, shape, uid, host, fingerprint, version, properties, permittedBy string
	namespaces                                                            sql.NullString
}

const selectAcquired = `SELECT a.name, a.id, a.term, ` + freshnessOfRow + `, a.shape, a.cluster_uid, a.host, a.fingerprint, a.version, a.properties, a.permitted_by, a.namespaces
	FROM accounts a WHERE `

func (row *acquiredRow) scan(from sqldb.Scanner) error {
	return from.Scan(&row.name, &row.id, &row.term, &row.freshness, &row.shape, &row.uid, &row.host, &row.fingerprint, &row.version,
		&row.properties, &row.permittedBy, &row.namespaces)
}

func lockAcquired(ctx context.Context, tx *sqldb.Tx, account vedette.AccountName) (row acquiredRow, err error) {
	lock := sqldb.Named("lock the acquired account", selectAcquired+`a.name = ?`+tx.Dialect.ForUpdate)
	err = row.scan(tx.QueryRow(ctx, lock, string(account)))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNoAccount
	}
	return row, err
}

// storeDetails stores what the new cacher reports about its account, unless it is stored already, and reports whether
// readers of the account see anything else than before.
func (row *acquiredRow) storeDetails(ctx context.Context, tx *sqldb.Tx, h CacherClaim) (changed bool, err error) {
	d, err := row.details(h)
	if err != nil || d.isStored {
		return false, err
	}
	_, err = tx.Exec(ctx, sqldb.Named("update the details of an account", `UPDATE accounts SET cluster_uid = ?, host = ?, fingerprint = ?, version = ?, properties = ?, namespaces = ?, permitted_by = ? WHERE id = ?`),
		append(d.columns, d.permittedBy, row.id)...)
	return d.isVisible, err
}

// accountDetails is what a cacher reports about its account.
type accountDetails struct {
	columns     []any // as accountColumns has them
	permittedBy string
	isStored    bool // nothing of it differs from the row
	isVisible   bool // readers of the account see what differs
}

// details compares what the new cacher reports about its account with the row. If RBAC hides the cluster's uid from it, the stored uid
// stays.
func (row *acquiredRow) details(h CacherClaim) (d accountDetails, err error) {
	if h.Account == nil {
		return accountDetails{isStored: true}, nil
	}
	a, permittedBy := *h.Account, string(h.Agent)
	if a.Cluster.UID == "" {
		a.Cluster.UID = row.uid
	}
	if h.KeepPermissions {
		var stored vedette.Properties
		if err := json.Unmarshal([]byte(row.properties), &stored); err != nil {
			return d, fmt.Errorf("read the properties of account %s: %w", a.Name, err)
		}
		a.Properties.Permissions, permittedBy = stored.Permissions, row.permittedBy
	}
	if d.columns, err = accountColumns(a); err != nil {
		return d, err
	}
	columns := d.columns
	if h.KeepNamespaces {
		columns[len(columns)-1] = row.namespaces
	}
	d.permittedBy = sqldb.Sanitize(permittedBy, sqldb.MaxAccountName)
	d.isVisible = columns[0] != row.uid || columns[3] != row.version || columns[4] != row.properties ||
		!h.KeepNamespaces && !sameText(columns[5], row.namespaces)
	d.isStored = !d.isVisible && columns[1] == row.host && columns[2] == row.fingerprint && d.permittedBy == row.permittedBy
	return d, nil
}

// sameText compares a column of accountColumns, which is nil or a text, with the stored one.
func sameText(column any, stored sql.NullString) bool {
	text, valid := column.(string)
	return valid == stored.Valid && text == stored.String
}

// Release records that no agent serves the account. It does nothing if another agent has taken the
// account since then, at this server or at another one.
func (r *Registry) Release(ctx context.Context, account vedette.AccountName, term vedette.Term, server vedette.ServerID) error {
	defer r.versions.AccountLog.Note(account)
	r.writeThrough.Disconnect(account)
	_, err := r.db.ExecWrite(ctx, sqldb.Named("release an account", `UPDATE accounts SET holder = '', server = '', orphaned = ? WHERE name = ? AND term = ? AND server = ? AND orphaned = 0`),
		sqldb.ToMicros(time.Now()), string(account), int64(term), string(server))
	return r.db.WrapError("release account "+string(account), err)
}

// Assigned is who has an account.
type Assigned struct {
	Account vedette.AccountName
	Term    vedette.Term
	Holder  vedette.AgentID  // the cacher; empty if there is none
	Server  vedette.ServerID // to which the cacher is connected
}

// Assigned returns who has each of some accounts. Accounts that do not exist are left out.
func (r *Registry) Assigned(ctx context.Context, names []vedette.AccountName) ([]Assigned, error) {
	if len(names) == 0 {
		return nil, nil
	}
	where, args := AccountCondition(names)
	return r.assignedWhere(ctx, where, args...)
}

// Unassigned returns which of some accounts nobody has.
func (r *Registry) Unassigned(ctx context.Context, names []vedette.AccountName) ([]Assigned, error) {
	if len(names) == 0 {
		return nil, nil
	}
	where, args := AccountCondition(names)
	return r.assignedWhere(ctx, `a.holder = '' AND `+where, args...)
}

func (r *Registry) assignedWhere(ctx context.Context, where string, args ...any) ([]Assigned, error) {
	var all []Assigned
	err := r.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var name, holder, server string
		var term int64
		err := rows.Scan(&name, &term, &holder, &server)
		all = append(all, Assigned{vedette.AccountName(name), vedette.Term(term), vedette.AgentID(holder), vedette.ServerID(server)})
		return err
	}, sqldb.Named("read who has accounts", `SELECT a.name, a.term, a.holder, a.server FROM accounts a WHERE a.name IS NOT NULL AND `+where), args...)
	return all, r.db.WrapError("read who has accounts", err)
}

const selectTerm = `SELECT id, term FROM accounts WHERE name = ?`

var selectAccount = sqldb.Named("read the account", selectAccounts+` AND a.name = ?`)

const selectAccounts = `SELECT a.name, a.cluster_uid, a.host, a.fingerprint, a.version, a.shape, a.properties, a.namespaces, a.term, a.holder, a.server, a.registered, a.last_seen, a.orphaned, a.permitted_by, a.settled, a.complete, ` + Freshness + `
	FROM accounts a` + JoinFreshness + `WHERE a.name IS NOT NULL`

// Accounts returns all accounts, ordered by name.
func (r *Registry) Accounts(ctx context.Context) ([]Account, error) { return r.AccountsNamed(ctx) }

// AccountsNamed returns those of the accounts that exist, or all accounts if none is given, ordered
// by name.
func (r *Registry) AccountsNamed(ctx context.Context, names ...vedette.AccountName) ([]Account, error) {
	var accounts []Account
	where, args := AccountCondition(names)
	err := r.db.QueryEach(ctx, func(rows *sql.Rows) error {
		a, err := scanAccount(rows)
		accounts = append(accounts, a)
		return err
	}, sqldb.Named("read accounts", selectAccounts+` AND `+where+` ORDER BY a.name`), args...)
	return accounts, r.db.WrapError("read the accounts", err)
}

// Account returns one account, or ErrNoAccount.
func (r *Registry) Account(ctx context.Context, name vedette.AccountName) (Account, error) {
	var a Account
	err := r.db.QueryOne(ctx, func(row sqldb.Scanner) (err error) { a, err = scanAccount(row); return err }, selectAccount, string(name))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNoAccount
	}
	return a, r.db.WrapError("read account "+string(name), err)
}

func scanAccount(row sqldb.Scanner) (Account, error) {
	var a Account
	var name, holder, server, properties, permittedBy string
	var namespaces sql.NullString
	var term, registered, seen, orphaned, settled, complete, freshnessSeen int64
	err := row.Scan(&name, &a.Cluster.UID, &a.Cluster.Host, &a.Cluster.Fingerprint, &a.Cluster.Version, &a.Shape, &properties, &namespaces,
		&term, &holder, &server, &registered, &seen, &orphaned, &permittedBy, &settled, &complete, &freshnessSeen)
	if err != nil {
		return a, err
	}
	a.Name = vedette.AccountName(name)
	a.Term = vedette.Term(term)
	a.Holder = vedette.AgentID(holder)
	a.Server = vedette.ServerID(server)
	a.PermittedBy = vedette.AgentID(permittedBy)
	a.Registered = sqldb.FromMicros(registered)
	a.LastSeen = sqldb.FromMicros(max(seen, freshnessSeen))
	a.Orphaned = sqldb.FromMicros(orphaned)
	a.Settled, a.Complete = sqldb.FromMicros(settled), sqldb.FromMicros(complete)
	if err := json.Unmarshal([]byte(properties), &a.Properties); err != nil {
		return a, fmt.Errorf("read the properties of account %s: %w", name, err)
	}
	if namespaces.Valid {
		err = json.Unmarshal([]byte(namespaces.String), &a.Namespaces)
	}
	return a, err
}

// Account is a stored account.
type Account struct {
	vedette.Account
	Term       vedette.Term
	Holder     vedette.AgentID  // the cacher; empty if none is connected
	Server     vedette.ServerID // to which the holder is connected
	Registered time.Time
	LastSeen   time.Time // when an agent was last connected for it
	Orphaned   time.Time // since when no agent is connected; zero while one is
	// PermittedBy is the agent that set the account's permissions; empty until the account
	// has its first cacher.
	PermittedBy vedette.AgentID
	FirstSync
}

// FirstSync says how far the first synchronization of an account has come.
type FirstSync struct {
	// Settled is since when no feed waits for its first snapshot: each is stored, or the cluster does not let the
	// agent read it. Zero until then.
	Settled time.Time
	// Complete is since when all feeds by which Spinnaker decides are stored. Zero until then.
	Complete time.Time
}
