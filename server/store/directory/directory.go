package directory

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/admission"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/versions"
)

// Directory knows in which database each account is. Its methods may be called concurrently.
type Directory struct {
	db       *sqldb.DB // the first
	versions *versions.Versions
	names    []string // of all databases, the first at first
	// changing lets one account at a time appear or disappear. It holds two connections then, so it waits for no other that does.
	changing *admission.Semaphore

	mu sync.Mutex
	// known are accounts that were found. One that is not known is looked for, so names that do not exist take no memory.
	known map[vedette.AccountName]string
	// forgotten counts how often known lost an account, so that what was read before is not remembered after.
	forgotten uint64
}

// New returns the directory in the first database, for databases of names.
func New(first *sqldb.DB, v *versions.Versions, shards []string) *Directory {
	d := &Directory{db: first, versions: v, names: append([]string{First}, shards...), changing: admission.NewSemaphore(1),
		known: map[vedette.AccountName]string{}}
	v.OnVisibility(d.Forget)
	v.OnPublishAll(d.forgetAll)
	return d
}

// Forget makes the next call look for an account.
func (d *Directory) Forget(account vedette.AccountName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgotten++
	delete(d.known, account)
}

func (d *Directory) forgetAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgotten++
	clear(d.known)
}

// Of returns in which database an account is, or would be if it exists: the first for one that is not known. It may be out of date by what
// another server has done a moment ago, and what is written there fails then.
func (d *Directory) Of(ctx context.Context, account vedette.AccountName) (string, error) {
	found, err := d.find(ctx, []vedette.AccountName{account})
	return found[account], err
}

// Find is Of for what is read, of several accounts. It is up to date.
func (d *Directory) Find(ctx context.Context, accounts []vedette.AccountName) (map[vedette.AccountName]string, error) {
	d.versions.Refresh()
	return d.find(ctx, accounts)
}

// maxLookups is how many accounts are looked for in one statement.
const maxLookups = 1000

func (d *Directory) find(ctx context.Context, accounts []vedette.AccountName) (map[vedette.AccountName]string, error) {
	found := make(map[vedette.AccountName]string, len(accounts))
	var unknown []vedette.AccountName
	d.mu.Lock()
	forgotten := d.forgotten
	for _, account := range accounts {
		if name, isKnown := d.known[account]; isKnown {
			found[account] = name
		} else {
			unknown = append(unknown, account)
		}
	}
	d.mu.Unlock()
	if len(unknown) == 0 {
		return found, nil
	}
	read := map[vedette.AccountName]string{}
	for chunk := range slices.Chunk(unknown, maxLookups) {
		where, args := sqldb.Conditions{sqldb.IsOneOf("name", chunk, sqldb.MaxAccountName)}.Where()
		err := d.db.QueryEach(ctx, func(rows *sql.Rows) error {
			var account, name string
			err := rows.Scan(&account, &name)
			read[vedette.AccountName(account)], found[vedette.AccountName(account)] = name, name
			return err
		}, sqldb.Named("find the databases of accounts", `SELECT name, shard FROM account_shards`+where), args...)
		if err != nil {
			return nil, d.db.WrapError("find the databases of accounts", err)
		}
	}
	if d.db.KnowsWrites() { // otherwise nobody says what others change
		d.remember(read, forgotten)
	}
	return found, nil
}

func (d *Directory) remember(read map[vedette.AccountName]string, forgotten uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.forgotten != forgotten {
		return
	}
	for account, name := range read {
		d.known[account] = name
	}
}

// Candidate is a database that a new account may get.
type Candidate struct {
	Name string
	// Knows reports whether a process has a row in the database; nil if that does not matter.
	Knows func(token string) bool
}

// Place returns the database of an account. It chooses one for a new account: the one of fewest accounts, of those that all servers know.
// The error is vedette.Conflict if other services take the account for one that exists.
func (d *Directory) Place(ctx context.Context, account vedette.AccountName, candidates []Candidate) (placed string, err error) {
	err = d.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) (err error) {
		placed, err = place(ctx, tx, account, candidates, d.db.IsShared())
		return err
	})
	return placed, d.db.WrapError("choose a database for account "+string(account), err)
}

func place(ctx context.Context, tx *sqldb.Tx, account vedette.AccountName, candidates []Candidate, isShared bool) (string, error) {
	if err := lockShards(ctx, tx); err != nil {
		return "", err
	}
	var found string
	err := tx.QueryRow(ctx, selectShard, string(account)).Scan(&found)
	if !errors.Is(err, sql.ErrNoRows) {
		return found, err
	}
	existing := 0
	if err := tx.QueryRow(ctx, sqldb.Named("find an account of the first database", `SELECT COUNT(*) FROM accounts WHERE name = ? OR retired = ?`), string(account), string(account)).
		Scan(&existing); err != nil {
		return "", err
	}
	if existing == 0 {
		if err := checkSimilar(ctx, tx, account); err != nil {
			return "", err
		}
		if found, err = choose(ctx, tx, candidates, isShared); err != nil {
			return "", err
		}
	}
	_, err = tx.Exec(ctx, sqldb.Named("record the database of an account", `INSERT INTO account_shards (name, shard) VALUES (?, ?)`), string(account), found)
	return found, err
}

var selectShard = sqldb.Named("find the database of an account", `SELECT shard FROM account_shards WHERE name = ?`)

// checkSimilar is what registry does for the accounts of one database.
func checkSimilar(ctx context.Context, tx *sqldb.Tx, name vedette.AccountName) error {
	folded := name.Folded()
	return tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var other string
		if err := rows.Scan(&other); err != nil {
			return err
		}
		return registry.CheckSimilar(name, folded, vedette.AccountName(other))
	}, sqldb.Named("read the names of accounts", `SELECT name FROM account_shards ORDER BY name`))
}

// choose returns the database of the fewest accounts.
func choose(ctx context.Context, tx *sqldb.Tx, candidates []Candidate, isShared bool) (string, error) {
	counts, tokens := map[string]int64{}, map[string]bool{}
	err := tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var name string
		var n int64
		err := rows.Scan(&name, &n)
		counts[name] = n
		return err
	}, sqldb.Named("count the accounts of databases", `SELECT s.name, COUNT(a.name) FROM shards s LEFT JOIN account_shards a ON a.shard = s.name GROUP BY s.name`))
	if err == nil && isShared {
		tokens, err = sqldb.ServerTokens(ctx, tx)
	}
	if err != nil {
		return "", err
	}
	return fewest(candidates, counts, tokens), nil
}

// fewest chooses among the candidates that are recorded and that all processes know. The first database is always one.
func fewest(candidates []Candidate, counts map[string]int64, tokens map[string]bool) string {
	best := First
	for _, c := range candidates {
		n, isRecorded := counts[c.Name]
		if isRecorded && n < counts[best] && c.isKnownTo(tokens) {
			best = c.Name
		}
	}
	return best
}

func (c Candidate) isKnownTo(tokens map[string]bool) bool {
	for token := range tokens {
		if c.Knows != nil && !c.Knows(token) {
			return false
		}
	}
	return true
}

// ErrMoved means that an account was removed, or is in another database, since it was looked for.
var ErrMoved = vedette.Errorf(vedette.Unavailable, "the account is being removed, or moves to another database: try again")

// Change calls do while an account neither appears nor disappears at any server. do returns whether something of the account is still
// in its database; otherwise the account may be placed anew. It is called with the smallest term that the account may have next,
// and returns that too. The error is ErrMoved if the account is not in the database.
func (d *Directory) Change(ctx context.Context, account vedette.AccountName, name string,
	do func(ctx context.Context, term int64) (remains bool, next int64, err error)) error {
	permit, err := d.changing.Acquire(ctx)
	if err != nil {
		return err
	}
	defer permit.Release()
	defer d.Forget(account)
	action := "change the database of account " + string(account)
	if d.db.Dialect.SingleWriter { // no other process can change it
		return d.db.WrapError(action, d.changeAlone(ctx, account, name, do))
	}
	return d.db.WrapError(action, d.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		if err := tx.WriteToLock(ctx, sqldb.Named("write the lock of an account's database", `UPDATE account_shards SET locks = locks + 1 WHERE name = ?`), string(account)); err != nil {
			return err
		}
		term, err := begin(ctx, tx, account, name)
		if err != nil {
			return err
		}
		remains, next, err := do(ctx, term)
		if err != nil {
			return err
		}
		return end(ctx, tx, account, remains, next)
	}))
}

func (d *Directory) changeAlone(ctx context.Context, account vedette.AccountName, name string,
	do func(ctx context.Context, term int64) (remains bool, next int64, err error)) error {
	var term int64
	err := d.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) (err error) {
		term, err = begin(ctx, tx, account, name)
		return err
	})
	if err != nil {
		return err
	}
	remains, next, err := do(ctx, term)
	if err != nil {
		return err
	}
	return d.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) error { return end(ctx, tx, account, remains, next) })
}

// begin locks the row of an account, and returns the smallest term that it may have next.
func begin(ctx context.Context, tx *sqldb.Tx, account vedette.AccountName, name string) (term int64, err error) {
	var found string
	err = tx.QueryRow(ctx, sqldb.Named("lock the database of an account", selectShard.SQL+tx.Dialect.ForUpdate), string(account)).Scan(&found)
	if errors.Is(err, sql.ErrNoRows) || err == nil && found != name {
		return 0, ErrMoved
	}
	if err != nil {
		return 0, err
	}
	return term, tx.QueryRow(ctx, sqldb.Named("read the next term", `SELECT value FROM counters WHERE name = 'term'`)).Scan(&term)
}

// end records what is left of an account, and how large the next term must be.
func end(ctx context.Context, tx *sqldb.Tx, account vedette.AccountName, remains bool, next int64) error {
	if remains {
		return nil
	}
	if _, err := tx.Exec(ctx, sqldb.Named("raise the next term", `UPDATE counters SET value = ? WHERE name = 'term' AND value < ?`), next, next); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, sqldb.Named("forget the database of an account", `DELETE FROM account_shards WHERE name = ?`), string(account))
	return err
}

// Strays returns those of the accounts of a database that are not entered there. The process that removed or registered them has
// ended in the middle of it.
func (d *Directory) Strays(ctx context.Context, name string, accounts []vedette.AccountName) ([]vedette.AccountName, error) {
	entered := map[vedette.AccountName]bool{}
	err := d.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var account string
		err := rows.Scan(&account)
		entered[vedette.AccountName(account)] = true
		return err
	}, sqldb.Named("read the accounts of a database", `SELECT name FROM account_shards WHERE shard = ?`), name)
	strays := slices.DeleteFunc(slices.Clone(accounts), func(account vedette.AccountName) bool { return entered[account] })
	return strays, d.db.WrapError("read which accounts are in database "+name, err)
}

// RemoveStray calls remove unless an account has been entered in a database meanwhile, while no account can be.
func (d *Directory) RemoveStray(ctx context.Context, account vedette.AccountName, name string,
	remove func(ctx context.Context) error) error {
	permit, err := d.changing.Acquire(ctx)
	if err != nil {
		return err
	}
	defer permit.Release()
	action := "remove account " + string(account) + " from database " + name
	return d.db.WrapError(action, d.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		if err := lockShards(ctx, tx); err != nil {
			return err
		}
		var found string
		err := tx.QueryRow(ctx, selectShard, string(account)).Scan(&found)
		if err == nil && found == name {
			return nil
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		return remove(ctx)
	}))
}

// Entered returns in which database an account is entered, if it is. It reads the first database.
func (d *Directory) Entered(ctx context.Context, account vedette.AccountName) (name string, isEntered bool, err error) {
	err = d.db.QueryOne(ctx, sqldb.ScanInto(&name), selectShard, string(account))
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return name, err == nil, d.db.WrapError("find the database of account "+string(account), err)
}
