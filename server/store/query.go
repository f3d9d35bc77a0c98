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

// Objects returns a page of what a query selects. The error is vedette.Invalid
// where the selector, the cursor or the limit can't be used. Accounts and kinds
// that are not there select nothing.
func (s *Store) Objects(ctx context.Context, q Query) (Page, error) {
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	if q.Limit < 0 || q.Limit > maxLimit {
		return Page{}, vedette.Errorf(vedette.Invalid, "the limit %d is not between 1 and %d", q.Limit, maxLimit)
	}
	r, err := s.resolve(ctx, q)
	if err != nil {
		return Page{}, s.explain("read objects", err)
	}
	page, err := r.page(ctx)
	return page, s.explain("read objects", err)
}

// search is a query whose names are resolved to numbers.
type search struct {
	Query
	store    *Store
	scope    conditions // of accounts, kinds and feeds alone
	filters  conditions // of objects
	narrow   bool       // few rows are selected, wherever they stand in the order
	indexed  bool       // and an index of objects leads to them
	nothing  bool       // selects nothing
	after    *position  // nil on the first page
	room     *room      // for what is read, compressed
	accounts []int64    // nil for all
}

func (s *Store) resolve(ctx context.Context, q Query) (*search, error) {
	r := &search{Query: q, store: s}
	if q.After != "" {
		at, err := parseCursor(q.After)
		if err != nil {
			return nil, err
		}
		r.after = &at
	}
	if err := errors.Join(r.resolveAccounts(ctx), r.resolveKinds(ctx)); err != nil {
		return nil, err
	}
	for column, value := range map[string]string{"o.namespace": q.Namespace, "o.name": q.Name} {
		if value != "" {
			r.filters = append(r.filters, condition{column + " = ?", []any{clean(value, maxName)}})
		}
	}
	if q.Application != "" {
		r.filters = append(r.filters, condition{"o.application = ?", []any{clean(q.Application, maxApplication)}})
	}
	r.indexed = q.Application != ""
	r.narrow = r.indexed || q.Name != ""
	return r, r.resolveSelector(ctx)
}

func (r *search) resolveAccounts(ctx context.Context) error {
	if len(r.Accounts) == 0 {
		r.scope = append(r.scope, condition{"a.name IS NOT NULL", nil})
		return nil
	}
	where, args := accountCondition(r.Accounts)
	r.accounts = []int64{}
	err := r.store.each(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		r.accounts = append(r.accounts, id)
		return err
	}, `SELECT a.id FROM accounts a WHERE `+where, args...)
	r.scope = append(r.scope, r.store.dialect.in("a.id", r.accounts))
	r.nothing = r.nothing || len(r.accounts) == 0
	return err
}

func (r *search) resolveKinds(ctx context.Context) error {
	if len(r.Kinds) == 0 {
		return nil
	}
	var ids []int64
	for _, kind := range r.Kinds {
		id, ok, err := r.store.kinds.find(ctx, r.store, kind)
		if err != nil {
			return err
		}
		if ok {
			ids = append(ids, id)
		}
	}
	r.scope = append(r.scope, r.store.dialect.in("k.id", ids))
	r.nothing = r.nothing || len(ids) == 0
	return nil
}

func (r *search) resolveSelector(ctx context.Context) error {
	if r.Selector == "" {
		return nil
	}
	parsed, err := parseSelector(r.Selector)
	if err != nil || parsed.Empty() || r.nothing {
		return err
	}
	ids, err := r.store.matchLabelsets(ctx, parsed, r.accounts)
	if err != nil {
		return err
	}
	slices.Sort(ids)
	r.filters = append(r.filters, r.store.dialect.in("o.labelset", ids))
	// A selector that takes objects without labels takes most of them.
	r.indexed = r.indexed || !slices.Contains(ids, 0)
	r.narrow = r.narrow || r.indexed
	r.nothing = len(ids) == 0
	return nil
}

func (r *search) page(ctx context.Context) (Page, error) {
	page := Page{Items: []Row{}, Total: -1}
	if !r.SkipTotal {
		total, err := r.total(ctx)
		if err != nil {
			return page, err
		}
		page.Total = total
	}
	if r.nothing {
		return page, nil
	}
	return page, r.fill(ctx, &page)
}

// fill reads rows until there are as many as are wanted, or the page is full.
func (r *search) fill(ctx context.Context, page *Page) error {
	wanted, expanded := r.Limit, newRoom(r.Bytes)
	r.room = newRoom(r.Bytes)
	for steps := 0; ; steps++ {
		r.Limit = r.step(steps, wanted-len(page.Items))
		found, err := r.rows(ctx)
		if err != nil {
			return err
		}
		more := len(found) > r.Limit || r.room.isFull()
		found = found[:min(len(found), r.Limit)]
		rows, err := r.store.unpack(ctx, found, expanded)
		if err != nil {
			return err
		}
		page.Items = append(page.Items, rows...)
		if len(rows) > 0 {
			last := found[len(rows)-1].position()
			r.after = &last
		}
		if more = more || expanded.isFull(); !more {
			return nil
		}
		if len(page.Items) == wanted || r.room.isFull() || expanded.isFull() {
			page.Next = r.after.String()
			return nil
		}
	}
}

// total counts what all pages hold together. The feeds know it, as long as
// nothing but accounts and kinds are asked for.
func (r *search) total(ctx context.Context) (total int64, err error) {
	if r.nothing {
		return 0, nil
	}
	query, where := `SELECT COALESCE(SUM(f.objects), 0) FROM feeds f JOIN accounts a ON a.id = f.account_id JOIN kinds k ON k.id = f.kind_id`, r.scope
	if len(r.filters) > 0 {
		query, where = `SELECT COUNT(*) FROM `+r.tables(), slices.Concat(r.scope, r.filters)
	}
	clause, args := where.where()
	err = r.store.one(ctx, into(&total), query+clause, args...)
	return total, err
}

// rows returns one row more than the limit where there is one, to know of a
// next page.
func (r *search) rows(ctx context.Context) ([]foundRow, error) {
	if !r.narrow {
		return r.walk(ctx)
	}
	where := slices.Concat(r.scope, r.filters)
	if r.after != nil {
		where = append(where, r.after.after())
	}
	return r.store.find(ctx, choice{where, orderAll, r.Limit + 1, r.Bodies, r.tables(), r.room})
}

func (r *search) tables() string {
	if r.indexed {
		return r.store.byIndex()
	}
	return r.store.byScope()
}

const (
	orderAll  = "a.name, k.name, k.grp, o.namespace, o.name"
	orderPair = "o.namespace, o.name"
)

// pair is an account's kind with the number of its objects.
type pair struct {
	account, kind int64
	at            position // with account and kind alone
	objects       int64
}

const pairsAtOnce = 256

// walk goes through accounts and kinds in their order, since no index has the
// rows of all of them in one order: sorting a fleet for each page of 500 would
// take seconds. What the feeds count tells which of them are worth a look.
func (r *search) walk(ctx context.Context) ([]foundRow, error) {
	var found []foundRow
	where := r.scope
	if r.after != nil {
		where = slices.Concat(r.scope, conditions{r.after.fromPair()})
	}
	for len(found) <= r.Limit && !r.room.isFull() {
		pairs, err := r.pairs(ctx, where)
		if err != nil || len(pairs) == 0 {
			return found, err
		}
		if found, err = r.visit(ctx, pairs, found); err != nil {
			return nil, err
		}
		if len(pairs) < pairsAtOnce {
			break
		}
		where = slices.Concat(r.scope, conditions{pairs[len(pairs)-1].at.afterPair()})
	}
	return found, nil
}

func (r *search) pairs(ctx context.Context, where conditions) ([]pair, error) {
	if r.Namespace != "" {
		where = slices.Concat(where, conditions{{"f.namespace IN ('', ?)", []any{r.Namespace}}})
	}
	clause, args := where.where()
	var pairs []pair
	err := r.store.each(ctx, func(rows *sql.Rows) error {
		var p pair
		err := rows.Scan(&p.account, &p.kind, &p.at.account, &p.at.kind.Name, &p.at.kind.Group, &p.objects)
		pairs = append(pairs, p)
		return err
	}, fmt.Sprintf(`SELECT a.id, k.id, a.name, k.name, k.grp, SUM(f.objects) FROM feeds f JOIN accounts a ON a.id = f.account_id JOIN kinds k ON k.id = f.kind_id%s
		GROUP BY a.id, k.id, a.name, k.name, k.grp HAVING SUM(f.objects) > 0 ORDER BY a.name, k.name, k.grp LIMIT %d`, clause, pairsAtOnce), args...)
	return pairs, err
}

// visit reads the pairs' rows until there are enough. Small pairs are read
// together and sorted by the database; a big one alone, in the order of the
// primary key.
func (r *search) visit(ctx context.Context, pairs []pair, found []foundRow) ([]foundRow, error) {
	for len(pairs) > 0 && len(found) <= r.Limit && !r.room.isFull() {
		n := window(pairs, int64(r.Limit))
		more, err := r.look(ctx, pairs[:n], r.Limit+1-len(found))
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
		pairs = pairs[n:]
	}
	return found, nil
}

// window returns how many of the pairs to read at once.
func window(pairs []pair, limit int64) int {
	sum := pairs[0].objects
	n := 1
	for n < len(pairs) && sum+pairs[n].objects <= 2*limit {
		sum += pairs[n].objects
		n++
	}
	return n
}

func (r *search) look(ctx context.Context, pairs []pair, limit int) ([]foundRow, error) {
	where := slices.Clone(r.filters)
	resume := r.after != nil && r.after.comparePair(pairs[0].at) == 0
	if len(pairs) == 1 {
		where = append(where, condition{"o.account_id = ? AND o.kind_id = ?", []any{pairs[0].account, pairs[0].kind}})
		if resume {
			where = append(where, r.after.afterName())
		}
		return r.store.find(ctx, choice{where, orderPair, limit, r.Bodies, r.store.byKey(), r.room})
	}
	where = append(where, r.store.anyOf(pairs))
	if resume {
		where = append(where, r.after.after())
	}
	return r.store.find(ctx, choice{where, orderAll, limit, r.Bodies, r.store.byScope(), r.room})
}

// anyOf writes the pairs by account, which are sorted so.
func (s *Store) anyOf(pairs []pair) condition {
	var parts []string
	var args []any
	for start := 0; start < len(pairs); {
		end := start
		var kinds []int64
		for ; end < len(pairs) && pairs[end].account == pairs[start].account; end++ {
			kinds = append(kinds, pairs[end].kind)
		}
		of := s.dialect.in("o.kind_id", kinds)
		parts = append(parts, "o.account_id = ? AND "+of.sql)
		args = append(append(args, pairs[start].account), of.args...)
		start = end
	}
	return condition{"(" + strings.Join(parts, " OR ") + ")", args}
}

// Object returns one object with its body. The error is vedette.NotFound where
// the account or the object is not there.
func (s *Store) Object(ctx context.Context, account vedette.AccountName, key vedette.Key) (Row, error) {
	id, err := s.accountID(ctx, account)
	if err != nil {
		return Row{}, s.explain("read "+key.String()+" of account "+string(account), err)
	}
	missing := vedette.Errorf(vedette.NotFound, "account %s has no %s", account, key)
	kind, ok, err := s.kinds.find(ctx, s, key.Kind)
	if err != nil || !ok || !validName(key.Namespace, maxName) || !validName(key.Name, maxName) {
		return Row{}, s.explain("read an object", errors.Join(err, missing))
	}
	found, err := s.find(ctx, choice{conditions{{"o.account_id = ? AND o.kind_id = ? AND o.namespace = ? AND o.name = ?", []any{id, kind, key.Namespace, key.Name}}}, orderPair, 1, true, s.byKey(), nil})
	if err != nil {
		return Row{}, s.explain("read an object", err)
	}
	if len(found) == 0 {
		return Row{}, missing
	}
	rows, err := s.unpack(ctx, found, nil)
	if err != nil {
		return Row{}, s.explain("read an object", err)
	}
	return rows[0], nil
}
