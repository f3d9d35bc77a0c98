package read

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Objects returns a page of what a query selects. The error is vedette.Invalid if the selector,
// the cursor or the limit is invalid. Accounts and kinds that do not exist select nothing.
func (r *Reader) Objects(ctx context.Context, q Query) (Page, error) {
	if q.Limit == 0 {
		q.Limit = sqldb.DefaultLimit
	}
	if q.Limit < 0 || q.Limit > sqldb.MaxLimit {
		return Page{}, vedette.Errorf(vedette.Invalid, "the limit %d is not between 1 and %d", q.Limit, sqldb.MaxLimit)
	}
	resolved, err := r.resolve(ctx, q)
	if err != nil {
		return Page{}, r.db.WrapError("read objects", err)
	}
	page, err := resolved.page(ctx)
	return page, r.db.WrapError("read objects", err)
}

// resolvedQuery is a query whose names are resolved to ids.
type resolvedQuery struct {
	Query
	store    *Reader
	account  sqldb.Condition   // on accounts
	scope    sqldb.Conditions  // on accounts and kinds
	filters  sqldb.Conditions  // on objects
	narrow   bool              // selects few rows, anywhere in the order
	indexed  bool              // narrow, by a column of objects that has an index
	empty    bool              // selects nothing
	after    *position         // nil on the first page
	budget   *sqldb.ByteBudget // for the compressed columns
	accounts []int64           // nil for all
}

func (r *Reader) resolve(ctx context.Context, q Query) (*resolvedQuery, error) {
	resolved := &resolvedQuery{Query: q, store: r}
	if q.After != "" {
		pos, err := parseCursor(q.After)
		if err != nil {
			return nil, err
		}
		resolved.after = &pos
	}
	if err := errors.Join(resolved.resolveAccounts(ctx), resolved.resolveKinds(ctx)); err != nil {
		return nil, err
	}
	for column, value := range map[string]string{"o.namespace": q.Namespace, "o.name": q.Name} {
		if value != "" {
			resolved.filters = append(resolved.filters, sqldb.Equals(column, value, sqldb.MaxName))
		}
	}
	if q.NamePrefix != "" {
		resolved.filters = append(resolved.filters, r.namePrefix(q.NamePrefix))
	}
	if q.Application != "" {
		resolved.filters = append(resolved.filters, sqldb.Equals("o.application", q.Application, sqldb.MaxApplication))
	}
	resolved.indexed = q.Application != ""
	resolved.narrow = resolved.indexed || q.Name != ""
	return resolved, resolved.resolveSelector(ctx)
}

// namePrefix returns the condition that a name begins with a prefix. A "*" in the prefix stands for any text.
func (r *Reader) namePrefix(prefix string) sqldb.Condition {
	if !sqldb.IsValidText(prefix, sqldb.MaxName) {
		return sqldb.Never
	}
	return r.dialect.startsWith("o.name", prefix)
}

func (r *resolvedQuery) resolveAccounts(ctx context.Context) error {
	if len(r.Accounts) == 0 {
		r.account = sqldb.Cond("a.name IS NOT NULL")
		r.scope = append(r.scope, r.account)
		return nil
	}
	where, args := registry.AccountCondition(r.Accounts)
	r.accounts = []int64{}
	err := r.store.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		r.accounts = append(r.accounts, id)
		return err
	}, sqldb.Named("find the ids of accounts", `SELECT a.id FROM accounts a WHERE `+where), args...)
	r.account = r.store.db.Dialect.In("a.id", r.accounts)
	r.scope = append(r.scope, r.account)
	r.empty = r.empty || len(r.accounts) == 0
	return err
}

func (r *resolvedQuery) resolveKinds(ctx context.Context) error {
	if len(r.Kinds) == 0 {
		return nil
	}
	var ids []int64
	for _, kind := range r.Kinds {
		id, ok, err := r.store.kinds.LookupID(ctx, kind)
		if err != nil {
			return err
		}
		if ok {
			ids = append(ids, id)
		}
	}
	r.scope = append(r.scope, r.store.db.Dialect.In("k.id", ids))
	r.empty = r.empty || len(ids) == 0
	return nil
}

func (r *resolvedQuery) resolveSelector(ctx context.Context) error {
	if r.Selector == "" {
		return nil
	}
	parsed, err := ParseSelector(r.Selector)
	if err != nil || parsed.Empty() || r.empty {
		return err
	}
	ids, err := r.store.matchLabelsets(ctx, parsed, r.accounts)
	if err != nil {
		return err
	}
	slices.Sort(ids)
	r.filters = append(r.filters, r.store.db.Dialect.In("o.labelset", ids))
	// A selector that matches objects without labels matches most objects.
	r.indexed = r.indexed || !slices.Contains(ids, 0)
	r.narrow = r.narrow || r.indexed
	r.empty = len(ids) == 0
	return nil
}

func (r *resolvedQuery) page(ctx context.Context) (Page, error) {
	page := Page{Items: []Row{}, Total: -1}
	if !r.SkipTotal {
		total, err := r.total(ctx)
		if err != nil {
			return page, err
		}
		page.Total = total
	}
	if r.empty {
		return page, nil
	}
	return page, r.fillPage(ctx, &page)
}

// fillPage reads rows until there are as many as wanted, or the page is full.
func (r *resolvedQuery) fillPage(ctx context.Context, page *Page) error {
	wanted, decompressed := r.Limit, sqldb.NewByteBudget(r.Bytes)
	r.budget = sqldb.NewByteBudget(r.Bytes)
	for steps := 0; ; steps++ {
		r.Limit = r.rowsInStep(steps, wanted-len(page.Items))
		scanned, err := r.rows(ctx)
		if err != nil {
			return err
		}
		more := len(scanned) > r.Limit || r.budget.IsExhausted()
		scanned = scanned[:min(len(scanned), r.Limit)]
		rows, err := r.store.decompressRows(ctx, scanned, decompressed)
		if err != nil {
			return err
		}
		page.Items = append(page.Items, rows...)
		if len(rows) > 0 {
			last := scanned[len(rows)-1].position()
			r.after = &last
		}
		more = more || decompressed.IsExhausted()
		if !more {
			return nil
		}
		if len(page.Items) == wanted || r.budget.IsExhausted() || decompressed.IsExhausted() {
			page.Next = r.after.String()
			return nil
		}
	}
}

// total returns the number of objects on all pages. If the query restricts only accounts and
// kinds, the counts of feeds are enough.
func (r *resolvedQuery) total(ctx context.Context) (total int64, err error) {
	if r.empty {
		return 0, nil
	}
	if len(r.filters) == 0 {
		return r.feedTotal(ctx)
	}
	clause, args := slices.Concat(r.scope, r.filters).Where()
	err = r.store.db.QueryOneAnywhere(ctx, sqldb.ScanInto(&total), sqldb.Named("count the objects of a query", `SELECT COUNT(*) FROM `+r.tables()+clause), args...)
	return total, err
}

// rows returns one row more than the limit if there is one, which shows that there is another
// page.
func (r *resolvedQuery) rows(ctx context.Context) ([]scannedRow, error) {
	if !r.narrow {
		return r.scanInOrder(ctx)
	}
	where := slices.Concat(r.scope, r.filters)
	if r.after != nil {
		where = append(where, r.after.after())
	}
	return r.store.scan(ctx, selectSpec{where, orderByAll, r.Limit + 1, r.Bodies, r.tables(), r.budget})
}

func (r *resolvedQuery) tables() string {
	if r.indexed {
		return r.store.tablesByIndex()
	}
	return r.store.tablesByScope()
}

const (
	orderByAll  = "a.name, k.name, k.grp, o.namespace, o.name"
	orderByName = "o.namespace, o.name"
)

// accountKind is one kind in one account, and its number of objects.
type accountKind struct {
	accountID, kindID int64
	position          position // account and kind only
	objects           int64
}

const accountKindsPerQuery = 256

// The first page of most queries is in the first few accounts. The number grows with each query,
// so that a query for kinds that few accounts have takes few queries, too.
const (
	minAccountsPerQuery = 16
	maxAccountsPerQuery = 1024
)

// scanInOrder reads accounts and kinds one after the other, because no index orders the rows of
// several: sorting all objects for each page of 500 would take seconds. It reads which kinds the
// accounts have for a few accounts at a time, because a fleet has hundreds of thousands of them.
func (r *resolvedQuery) scanInOrder(ctx context.Context) ([]scannedRow, error) {
	var scanned []scannedRow
	next := sqldb.Conditions{r.account}
	if r.after != nil {
		next = append(next, sqldb.Cond("a.name >= ?", r.after.account))
	}
	for n := minAccountsPerQuery; len(scanned) <= r.Limit && !r.budget.IsExhausted(); n = min(2*n, maxAccountsPerQuery) {
		ids, last, err := r.nextAccounts(ctx, next, n)
		if err != nil || len(ids) == 0 {
			return scanned, err
		}
		scanned, err = r.scanAccounts(ctx, ids, scanned)
		if err != nil || len(ids) < n {
			return scanned, err
		}
		next = sqldb.Conditions{r.account, sqldb.Cond("a.name > ?", last)}
	}
	return scanned, nil
}

// nextAccounts returns at most n accounts, in the order of their names, and the last name.
func (r *resolvedQuery) nextAccounts(ctx context.Context, where sqldb.Conditions, n int) (ids []int64, last string, err error) {
	clause, args := where.Where()
	err = r.store.db.QueryEachAnywhere(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id, &last)
		ids = append(ids, id)
		return err
	}, sqldb.Named("find the next accounts", fmt.Sprintf(`SELECT a.id, a.name FROM accounts a%s ORDER BY a.name LIMIT %d`, clause, n)), args...)
	return ids, last, err
}

// scanAccounts reads the objects of accounts, until there are enough.
func (r *resolvedQuery) scanAccounts(ctx context.Context, ids []int64, scanned []scannedRow) ([]scannedRow, error) {
	scope := slices.Concat(r.scope, sqldb.Conditions{r.store.db.Dialect.In("a.id", ids)})
	where := scope
	if r.after != nil {
		where = slices.Concat(scope, sqldb.Conditions{r.after.fromAccountKind()})
	}
	for len(scanned) <= r.Limit && !r.budget.IsExhausted() {
		pairs, err := r.accountKinds(ctx, where)
		if err != nil || len(pairs) == 0 {
			return scanned, err
		}
		scanned, err = r.scanAccountKinds(ctx, pairs, scanned)
		if err != nil || len(pairs) < accountKindsPerQuery {
			return scanned, err
		}
		where = slices.Concat(scope, sqldb.Conditions{pairs[len(pairs)-1].position.afterAccountKind()})
	}
	return scanned, nil
}

// accountKinds returns the pairs that have any objects, by the counts of feeds.
func (r *resolvedQuery) accountKinds(ctx context.Context, where sqldb.Conditions) ([]accountKind, error) {
	if r.Namespace != "" {
		where = slices.Concat(where, sqldb.Conditions{sqldb.Cond("f.namespace IN ('', ?)", r.Namespace)})
	}
	clause, args := where.Where()
	var pairs []accountKind
	err := r.store.db.QueryEachAnywhere(ctx, func(rows *sql.Rows) error {
		var p accountKind
		err := rows.Scan(&p.accountID, &p.kindID, &p.position.account, &p.position.kind.Name, &p.position.kind.Group, &p.objects)
		pairs = append(pairs, p)
		return err
	}, sqldb.Named("find the next kinds of accounts", fmt.Sprintf(`SELECT a.id, k.id, a.name, k.name, k.grp, SUM(f.objects) FROM feeds f JOIN accounts a ON a.id = f.account_id JOIN kinds k ON k.id = f.kind_id%s
		GROUP BY a.id, k.id, a.name, k.name, k.grp HAVING SUM(f.objects) > 0 ORDER BY a.name, k.name, k.grp LIMIT %d`, clause, accountKindsPerQuery)), args...)
	return pairs, err
}

// scanAccountKinds reads the objects of pairs until there are enough. Several small pairs are read
// together and sorted by the database; a large one is read alone, in the order of the primary key.
func (r *resolvedQuery) scanAccountKinds(ctx context.Context, pairs []accountKind, scanned []scannedRow) ([]scannedRow, error) {
	for len(pairs) > 0 && len(scanned) <= r.Limit && !r.budget.IsExhausted() {
		n := windowSize(pairs, int64(r.Limit))
		more, err := r.scanWindow(ctx, pairs[:n], r.Limit+1-len(scanned))
		if err != nil {
			return nil, err
		}
		scanned = append(scanned, more...)
		pairs = pairs[n:]
	}
	return scanned, nil
}

// windowSize returns how many of the pairs to read together.
func windowSize(pairs []accountKind, limit int64) int {
	sum := pairs[0].objects
	n := 1
	for n < len(pairs) && sum+pairs[n].objects <= 2*limit {
		sum += pairs[n].objects
		n++
	}
	return n
}

func (r *resolvedQuery) scanWindow(ctx context.Context, pairs []accountKind, limit int) ([]scannedRow, error) {
	where := slices.Clone(r.filters)
	resume := r.after != nil && r.after.compareAccountKind(pairs[0].position) == 0
	if len(pairs) == 1 {
		where = append(where, sqldb.Cond("o.account_id = ? AND o.kind_id = ?", pairs[0].accountID, pairs[0].kindID))
		if resume {
			where = append(where, r.after.afterName())
		}
		return r.store.scan(ctx, selectSpec{where, orderByName, limit, r.Bodies, r.store.tablesByKey(), r.budget})
	}
	where = append(where, r.store.anyAccountKind(pairs))
	if resume {
		where = append(where, r.after.after())
	}
	return r.store.scan(ctx, selectSpec{where, orderByAll, limit, r.Bodies, r.store.tablesByScope(), r.budget})
}

// anyAccountKind returns the condition for any of the pairs, which are sorted by account.
func (r *Reader) anyAccountKind(pairs []accountKind) sqldb.Condition {
	var parts []string
	var args []any
	for start := 0; start < len(pairs); {
		end := start
		var kinds []int64
		for ; end < len(pairs) && pairs[end].accountID == pairs[start].accountID; end++ {
			kinds = append(kinds, pairs[end].kindID)
		}
		cond := r.db.Dialect.In("o.kind_id", kinds)
		parts = append(parts, "o.account_id = ? AND "+cond.SQL)
		args = append(append(args, pairs[start].accountID), cond.Args...)
		start = end
	}
	return sqldb.Cond("("+strings.Join(parts, " OR ")+")", args...)
}

// Object returns one object with its body. The error is vedette.NotFound if the account or the
// object does not exist.
func (r *Reader) Object(ctx context.Context, account vedette.AccountName, key vedette.Key) (Row, error) {
	id, err := r.registry.AccountID(ctx, account)
	if err != nil {
		return Row{}, r.db.WrapError("read "+key.String()+" of account "+string(account), err)
	}
	missing := vedette.Errorf(vedette.NotFound, "account %s has no %s", account, key)
	kindID, ok, err := r.kinds.LookupID(ctx, key.Kind)
	if err != nil || !ok || !sqldb.IsValidText(key.Namespace, sqldb.MaxName) || !sqldb.IsValidText(key.Name, sqldb.MaxName) {
		return Row{}, r.db.WrapError("read an object", errors.Join(err, missing))
	}
	scanned, err := r.scan(ctx, selectSpec{sqldb.Conditions{sqldb.Cond("o.account_id = ? AND o.kind_id = ? AND o.namespace = ? AND o.name = ?", id, kindID, key.Namespace, key.Name)}, orderByName, 1, true, r.tablesByKey(), nil})
	if err != nil {
		return Row{}, r.db.WrapError("read an object", err)
	}
	if len(scanned) == 0 {
		return Row{}, missing
	}
	rows, err := r.decompressRows(ctx, scanned, nil)
	if err != nil {
		return Row{}, r.db.WrapError("read an object", err)
	}
	return rows[0], nil
}

// A page with bodies and a byte limit is read in steps of increasing size. The driver reads a
// result to its end before it uses the connection again, so a single query would transfer all rows
// even if the first ones fill the page.
const (
	firstStep  = 128
	stepFactor = 4
)

// rowsInStep returns how many of the wanted rows to read in the next step.
func (r *resolvedQuery) rowsInStep(steps, wanted int) int {
	if !r.Bodies || r.Bytes <= 0 {
		return wanted
	}
	n := firstStep
	for range min(steps, 8) {
		n *= stepFactor
	}
	return min(n, wanted)
}
