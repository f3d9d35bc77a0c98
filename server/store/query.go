package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

const (
	defaultLimit = 500
	maxLimit     = 5000
)

// Objects returns a page of what a query selects. The error is vedette.Invalid if the selector,
// the cursor or the limit is invalid. Accounts and kinds that do not exist select nothing.
func (s *Store) Objects(ctx context.Context, q Query) (Page, error) {
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	if q.Limit < 0 || q.Limit > maxLimit {
		return Page{}, vedette.Errorf(vedette.Invalid, "the limit %d is not between 1 and %d", q.Limit, maxLimit)
	}
	r, err := s.resolve(ctx, q)
	if err != nil {
		return Page{}, s.wrapError("read objects", err)
	}
	page, err := r.page(ctx)
	return page, s.wrapError("read objects", err)
}

// resolvedQuery is a query whose names are resolved to ids.
type resolvedQuery struct {
	Query
	store    *Store
	account  condition   // on accounts
	scope    conditions  // on accounts and kinds
	filters  conditions  // on objects
	narrow   bool        // selects few rows, anywhere in the order
	indexed  bool        // narrow, by a column of objects that has an index
	empty    bool        // selects nothing
	after    *position   // nil on the first page
	budget   *byteBudget // for the compressed columns
	accounts []int64     // nil for all
}

func (s *Store) resolve(ctx context.Context, q Query) (*resolvedQuery, error) {
	r := &resolvedQuery{Query: q, store: s}
	if q.After != "" {
		pos, err := parseCursor(q.After)
		if err != nil {
			return nil, err
		}
		r.after = &pos
	}
	if err := errors.Join(r.resolveAccounts(ctx), r.resolveKinds(ctx)); err != nil {
		return nil, err
	}
	for column, value := range map[string]string{"o.namespace": q.Namespace, "o.name": q.Name} {
		if value != "" {
			r.filters = append(r.filters, equals(column, value, maxName))
		}
	}
	if q.Application != "" {
		r.filters = append(r.filters, equals("o.application", q.Application, maxApplication))
	}
	r.indexed = q.Application != ""
	r.narrow = r.indexed || q.Name != ""
	return r, r.resolveSelector(ctx)
}

func (r *resolvedQuery) resolveAccounts(ctx context.Context) error {
	if len(r.Accounts) == 0 {
		r.account = condition{"a.name IS NOT NULL", nil}
		r.scope = append(r.scope, r.account)
		return nil
	}
	where, args := accountCondition(r.Accounts)
	r.accounts = []int64{}
	err := r.store.queryEach(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		r.accounts = append(r.accounts, id)
		return err
	}, `SELECT a.id FROM accounts a WHERE `+where, args...)
	r.account = r.store.dialect.in("a.id", r.accounts)
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
		id, ok, err := r.store.kinds.lookupID(ctx, r.store, kind)
		if err != nil {
			return err
		}
		if ok {
			ids = append(ids, id)
		}
	}
	r.scope = append(r.scope, r.store.dialect.in("k.id", ids))
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
	r.filters = append(r.filters, r.store.dialect.in("o.labelset", ids))
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
	wanted, decompressed := r.Limit, newByteBudget(r.Bytes)
	r.budget = newByteBudget(r.Bytes)
	for steps := 0; ; steps++ {
		r.Limit = r.rowsInStep(steps, wanted-len(page.Items))
		scanned, err := r.rows(ctx)
		if err != nil {
			return err
		}
		more := len(scanned) > r.Limit || r.budget.isExhausted()
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
		more = more || decompressed.isExhausted()
		if !more {
			return nil
		}
		if len(page.Items) == wanted || r.budget.isExhausted() || decompressed.isExhausted() {
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
	clause, args := slices.Concat(r.scope, r.filters).where()
	err = r.store.queryOne(ctx, scanInto(&total), `SELECT COUNT(*) FROM `+r.tables()+clause, args...)
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
	next := conditions{r.account}
	if r.after != nil {
		next = append(next, condition{"a.name >= ?", []any{r.after.account}})
	}
	for n := minAccountsPerQuery; len(scanned) <= r.Limit && !r.budget.isExhausted(); n = min(2*n, maxAccountsPerQuery) {
		ids, last, err := r.nextAccounts(ctx, next, n)
		if err != nil || len(ids) == 0 {
			return scanned, err
		}
		scanned, err = r.scanAccounts(ctx, ids, scanned)
		if err != nil || len(ids) < n {
			return scanned, err
		}
		next = conditions{r.account, {"a.name > ?", []any{last}}}
	}
	return scanned, nil
}

// nextAccounts returns at most n accounts, in the order of their names, and the last name.
func (r *resolvedQuery) nextAccounts(ctx context.Context, where conditions, n int) (ids []int64, last string, err error) {
	clause, args := where.where()
	err = r.store.queryEach(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id, &last)
		ids = append(ids, id)
		return err
	}, fmt.Sprintf(`SELECT a.id, a.name FROM accounts a%s ORDER BY a.name LIMIT %d`, clause, n), args...)
	return ids, last, err
}

// scanAccounts reads the objects of accounts, until there are enough.
func (r *resolvedQuery) scanAccounts(ctx context.Context, ids []int64, scanned []scannedRow) ([]scannedRow, error) {
	scope := slices.Concat(r.scope, conditions{r.store.dialect.in("a.id", ids)})
	where := scope
	if r.after != nil {
		where = slices.Concat(scope, conditions{r.after.fromAccountKind()})
	}
	for len(scanned) <= r.Limit && !r.budget.isExhausted() {
		pairs, err := r.accountKinds(ctx, where)
		if err != nil || len(pairs) == 0 {
			return scanned, err
		}
		scanned, err = r.scanAccountKinds(ctx, pairs, scanned)
		if err != nil || len(pairs) < accountKindsPerQuery {
			return scanned, err
		}
		where = slices.Concat(scope, conditions{pairs[len(pairs)-1].position.afterAccountKind()})
	}
	return scanned, nil
}

// accountKinds returns the pairs that have any objects, by the counts of feeds.
func (r *resolvedQuery) accountKinds(ctx context.Context, where conditions) ([]accountKind, error) {
	if r.Namespace != "" {
		where = slices.Concat(where, conditions{{"f.namespace IN ('', ?)", []any{r.Namespace}}})
	}
	clause, args := where.where()
	var pairs []accountKind
	err := r.store.queryEach(ctx, func(rows *sql.Rows) error {
		var p accountKind
		err := rows.Scan(&p.accountID, &p.kindID, &p.position.account, &p.position.kind.Name, &p.position.kind.Group, &p.objects)
		pairs = append(pairs, p)
		return err
	}, fmt.Sprintf(`SELECT a.id, k.id, a.name, k.name, k.grp, SUM(f.objects) FROM feeds f JOIN accounts a ON a.id = f.account_id JOIN kinds k ON k.id = f.kind_id%s
		GROUP BY a.id, k.id, a.name, k.name, k.grp HAVING SUM(f.objects) > 0 ORDER BY a.name, k.name, k.grp LIMIT %d`, clause, accountKindsPerQuery), args...)
	return pairs, err
}

// scanAccountKinds reads the objects of pairs until there are enough. Several small pairs are read
// together and sorted by the database; a large one is read alone, in the order of the primary key.
func (r *resolvedQuery) scanAccountKinds(ctx context.Context, pairs []accountKind, scanned []scannedRow) ([]scannedRow, error) {
	for len(pairs) > 0 && len(scanned) <= r.Limit && !r.budget.isExhausted() {
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
		where = append(where, condition{"o.account_id = ? AND o.kind_id = ?", []any{pairs[0].accountID, pairs[0].kindID}})
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
func (s *Store) anyAccountKind(pairs []accountKind) condition {
	var parts []string
	var args []any
	for start := 0; start < len(pairs); {
		end := start
		var kinds []int64
		for ; end < len(pairs) && pairs[end].accountID == pairs[start].accountID; end++ {
			kinds = append(kinds, pairs[end].kindID)
		}
		cond := s.dialect.in("o.kind_id", kinds)
		parts = append(parts, "o.account_id = ? AND "+cond.sql)
		args = append(append(args, pairs[start].accountID), cond.args...)
		start = end
	}
	return condition{"(" + strings.Join(parts, " OR ") + ")", args}
}

// Object returns one object with its body. The error is vedette.NotFound if the account or the
// object does not exist.
func (s *Store) Object(ctx context.Context, account vedette.AccountName, key vedette.Key) (Row, error) {
	id, err := s.accountID(ctx, account)
	if err != nil {
		return Row{}, s.wrapError("read "+key.String()+" of account "+string(account), err)
	}
	missing := vedette.Errorf(vedette.NotFound, "account %s has no %s", account, key)
	kindID, ok, err := s.kinds.lookupID(ctx, s, key.Kind)
	if err != nil || !ok || !isValidText(key.Namespace, maxName) || !isValidText(key.Name, maxName) {
		return Row{}, s.wrapError("read an object", errors.Join(err, missing))
	}
	scanned, err := s.scan(ctx, selectSpec{conditions{{"o.account_id = ? AND o.kind_id = ? AND o.namespace = ? AND o.name = ?",
		[]any{id, kindID, key.Namespace, key.Name}}}, orderByName, 1, true, s.tablesByKey(), nil})
	if err != nil {
		return Row{}, s.wrapError("read an object", err)
	}
	if len(scanned) == 0 {
		return Row{}, missing
	}
	rows, err := s.decompressRows(ctx, scanned, nil)
	if err != nil {
		return Row{}, s.wrapError("read an object", err)
	}
	return rows[0], nil
}
