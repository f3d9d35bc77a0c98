package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/namefilter"
)

// SearchQuery selects objects by their keys in Clouddriver's cache:
//
//	KeyPrefix + kind + ":" + account + ":" + namespace + ":" + name
//
// Objects with the annotation that hides them from views are left out.
type SearchQuery struct {
	// Text is what keys must contain. "*" stands for any text.
	Text string
	// KeyPrefix is what all keys begin with.
	KeyPrefix string
	// KindName returns the name of a kind in keys, or "" for a kind that is not searched.
	KindName func(vedette.Kind) string
	// CanRead reports whether to search an account. Nil means all accounts.
	CanRead func(vedette.AccountName) bool
	// Namespace and Name, unless empty, are those of all objects that are found.
	Namespace, Name string
	// OnlyManaged are the accounts of which only objects are found that Spinnaker deployed.
	OnlyManaged map[vedette.AccountName]bool

	// Rules leave out objects by their applications.
	Rules []ApplicationRule

	// Related, if set, selects by application and cluster instead of by key.
	Related *RelatedQuery

	Offset int64
	Limit  int
}

// RelatedQuery selects the objects of applications and clusters. Their keys are
//
//	ApplicationPrefix + application
//	ClusterPrefix + account + ":" + application + ":" + cluster
type RelatedQuery struct {
	ApplicationPrefix string
	ClusterPrefix     string
	// Applications are all applications that match, or that have a cluster that does.
	Applications []string
	// Kinds are those whose objects belong to an application. Other objects do so only in the
	// accounts of AllKinds.
	Kinds    []vedette.Kind
	AllKinds map[vedette.AccountName]bool
}

// maxSearchText is more than the length of any key.
const maxSearchText = 2048

// SearchRow is an object that was found.
type SearchRow struct {
	vedette.Key
	Account     vedette.AccountName
	Application string
	Cluster     string // empty for an object of which no cluster consists
}

// Search returns a page of objects. Their order is the same for each page, but otherwise undefined.
// It takes one statement, or none if no account can have what is searched for, one more if
// accounts have changed since the last call, and one more with rules. The error is
// vedette.Invalid if the limit or the offset is out of range.
func (s *Store) Search(ctx context.Context, q SearchQuery) ([]SearchRow, error) {
	if q.Limit < 0 || q.Offset < 0 {
		return nil, vedette.Errorf(vedette.Invalid, "search objects: the limit %d or the offset %d is negative", q.Limit, q.Offset)
	}
	for range maxSearchAttempts {
		found, err := s.searchOnce(ctx, q)
		if err != nil {
			return nil, err
		}
		isHidden := func(r SearchRow) bool { return !q.shows(r.Kind, r.Application) }
		if !slices.ContainsFunc(found, isHidden) {
			return found, nil
		}
	}
	return nil, errNewApplication
}

func (s *Store) searchOnce(ctx context.Context, q SearchQuery) ([]SearchRow, error) {
	c, err := s.searchConditions(ctx, &q)
	if err != nil || c.empty {
		return nil, s.wrapError("search objects", err)
	}
	var found []SearchRow
	clause, args := c.clause(&s.dialect)
	err = s.queryEach(ctx, func(rows *sql.Rows) error {
		var accountID, kindID int64
		var r SearchRow
		if err := rows.Scan(&accountID, &kindID, &r.Namespace, &r.Name, &r.Application, &r.Cluster); err != nil {
			return err
		}
		if r.Cluster == unclustered {
			r.Cluster = ""
		}
		r.Account, r.Kind = c.accounts[accountID], c.kinds[kindID]
		found = append(found, r)
		return nil
	}, fmt.Sprintf(`SELECT o.account_id, o.kind_id, o.namespace, o.name, o.application, o.cluster FROM %s%s
		ORDER BY o.account_id, o.kind_id, o.namespace, o.name LIMIT %d OFFSET %d`, c.tables, clause, q.Limit, q.Offset), args...)
	return found, s.wrapError("search objects", err)
}

// CountSearch returns how many objects all pages have. It takes as many statements as Search.
func (s *Store) CountSearch(ctx context.Context, q SearchQuery) (int64, error) {
	c, err := s.searchConditions(ctx, &q)
	if err != nil || c.empty {
		return 0, s.wrapError("count objects", err)
	}
	var n int64
	clause, args := c.clause(&s.dialect)
	err = s.queryOne(ctx, scanInto(&n), `SELECT COUNT(*) FROM `+c.tables+clause, args...)
	return n, s.wrapError("count objects", err)
}

// searchConditions is a query in SQL.
type searchConditions struct {
	tables   string
	where    conditions
	accounts map[int64]vedette.AccountName
	kinds    map[int64]vedette.Kind
	names    map[int64]string // of kinds, in keys
	empty    bool             // nothing can be found
	// accountCondition does not name the accounts if they are all: PostgreSQL would sort all objects
	// before it stops at the limit.
	accountCondition condition
}

// clause returns the WHERE clause and its arguments. How many objects match depends so much on the
// arguments that a plan for all arguments, which PostgreSQL uses from the sixth execution on, takes
// two to three times as long.
func (c *searchConditions) clause(d *dialect) (string, []any) {
	clause, args := c.where.where()
	if d.planEach != nil {
		args = append([]any{d.planEach}, args...)
	}
	return clause, args
}

func (s *Store) searchConditions(ctx context.Context, q *SearchQuery) (*searchConditions, error) {
	c := &searchConditions{accounts: map[int64]vedette.AccountName{}, kinds: map[int64]vedette.Kind{}, names: map[int64]string{}}
	if err := c.readAccounts(ctx, s, q); err != nil {
		return nil, err
	}
	if err := c.readKinds(ctx, s, q); err != nil {
		return nil, err
	}
	kinds := sortedIDs(c.kinds)
	c.leaveOutAccounts(ctx, s, q, kinds)
	c.empty = !isValidText(q.Text, maxSearchText) || len(c.accounts) == 0 || len(kinds) == 0 ||
		q.Related != nil && len(q.Related.Applications) == 0
	if c.empty {
		return c, nil
	}
	var keys conditions
	if q.Related == nil {
		keys = c.keyConditions(&s.dialect, q)
	}
	if q.Related == nil && len(keys) == 0 && s.dialect.seeksByAccount { // only the kind is known, which is not the first column of the key
		c.accountCondition = s.dialect.in("o.account_id", sortedIDs(c.accounts))
	}
	c.where = conditions{s.dialect.in("o.kind_id", kinds), c.accountCondition}
	for _, f := range []struct{ column, value string }{{"o.namespace", q.Namespace}, {"o.name", q.Name}} {
		if f.value != "" {
			c.where = append(c.where, equals(f.column, f.value, maxName))
		}
	}
	if q.Related == nil {
		c.tables = "objects o" + s.dialect.keyHint
		c.where = append(c.where, keys...)
		if s.dialect.keyRange != "" {
			c.where = append(c.where, condition{s.dialect.keyRange, nil})
		}
	} else {
		c.tables = "objects o"
		c.where = append(c.where, c.relatedConditions(&s.dialect, q)...)
	}
	c.where = append(c.where, c.shown(&s.dialect, q))
	return c, c.addRules(ctx, s, q)
}

func (c *searchConditions) readAccounts(ctx context.Context, s *Store, q *SearchQuery) error {
	names, err := s.accountNames(ctx)
	if err != nil {
		return err
	}
	for id, name := range names.visible {
		if q.CanRead == nil || q.CanRead(name) {
			c.accounts[id] = name
		}
	}
	c.accountCondition = s.dialect.in("o.account_id", sortedIDs(c.accounts))
	if len(c.accounts) == len(names.visible) {
		c.accountCondition = s.dialect.notIn("o.account_id", names.hidden)
	}
	return nil
}

// leaveOutAccounts leaves out the accounts that cannot have what is searched for. If most may have
// it, all are read: the condition would cost more than the rows of the others.
func (c *searchConditions) leaveOutAccounts(ctx context.Context, s *Store, q *SearchQuery, kinds []int64) {
	if q.Related != nil || !s.isOnlyWriter() || s.CheckLease(ctx) != nil {
		return
	}
	pattern, candidates := q.namePattern(c), map[int64]vedette.AccountName{}
	for id, name := range c.accounts {
		if len(pattern) > 0 && strings.Contains(string(name), q.Text) || s.nameFilters.mayContain(id, pattern, kinds) {
			candidates[id] = name
		}
	}
	if len(candidates) <= len(c.accounts)/2 {
		c.accounts, c.accountCondition = candidates, s.dialect.in("o.account_id", sortedIDs(candidates))
	}
}

// namePattern returns what names or namespaces must contain, unless the name of their account does.
// It is empty if other parts of a key may contain the text or a part of it.
func (q *SearchQuery) namePattern(c *searchConditions) namefilter.Pattern {
	if isSpanning(q.Text) || strings.Contains(q.KeyPrefix, q.Text) || len(idsContaining(c.names, q.Text)) > 0 {
		return nil
	}
	return namefilter.NewPattern(q.Text)
}

// readKinds reads the kinds if another server may have inserted one.
func (c *searchConditions) readKinds(ctx context.Context, s *Store, q *SearchQuery) error {
	if !s.isOnlyWriter() {
		if err := s.kinds.load(ctx, s); err != nil {
			return err
		}
	}
	for id, kind := range s.kinds.cached() {
		if name := q.KindName(kind); name != "" {
			c.kinds[id], c.names[id] = kind, name
		}
	}
	return nil
}

// keyConditions select by key. The part of a key before the namespace is the same for all objects
// of an account and kind, so it is compared here: either it contains the text, or the text begins
// in it and ends in the rest, or the rest contains the text.
func (c *searchConditions) keyConditions(d *dialect, q *SearchQuery) conditions {
	switch {
	case strings.Contains(q.Text, "*"):
		key := "CONCAT(" + literal(q.KeyPrefix) + ", CASE o.kind_id"
		for _, id := range sortedIDs(c.names) {
			key += fmt.Sprintf(" WHEN %d THEN %s", id, literal(c.names[id]))
		}
		return conditions{d.contains(key+" END, ':', "+accountName+", ':', o.namespace, ':', o.name)", q.Text)}
	case strings.Contains(q.KeyPrefix, q.Text):
		return nil
	case !strings.Contains(q.Text, ":"):
		return conditions{anyOf(d.in("o.kind_id", idsContaining(c.names, q.Text)), d.in("o.account_id", idsContaining(c.accounts, q.Text)),
			d.contains("o.name", q.Text), d.contains("o.namespace", q.Text))}
	}
	return conditions{c.spanningCondition(d, q)}
}

const namespaceAndName = "CONCAT(o.namespace, ':', o.name)"

// spanningCondition is for a text with colons.
func (c *searchConditions) spanningCondition(d *dialect, q *SearchQuery) condition {
	alternatives := []condition{d.contains(namespaceAndName, q.Text)}
	for _, kindID := range sortedIDs(c.names) {
		prefix := q.KeyPrefix + c.names[kindID] + ":"
		for rest, accounts := range c.accountsByRest(prefix, q.Text) {
			alternative := both(d.in("o.kind_id", []int64{kindID}), d.in("o.account_id", accounts))
			if rest != "" {
				alternative = both(alternative, d.startsWith(namespaceAndName, rest))
			}
			alternatives = append(alternatives, alternative)
		}
	}
	return anyOf(alternatives...)
}

// accountsByRest returns the accounts with which a text may be in keys that begin with a prefix and
// an account, by what of the text must follow then. The rest is empty if the text is in that
// beginning.
func (c *searchConditions) accountsByRest(prefix, text string) map[string][]int64 {
	byRest := map[string][]int64{}
	for _, id := range sortedIDs(c.accounts) {
		begin := prefix + string(c.accounts[id]) + ":"
		if strings.Contains(begin, text) {
			byRest[""] = append(byRest[""], id)
			continue
		}
		for i := range min(len(text), len(begin)) {
			if rest := text[i+1:]; text[i] == ':' && strings.HasSuffix(begin, text[:i+1]) {
				byRest[rest] = append(byRest[rest], id)
			}
		}
	}
	return byRest
}

// maxRelatedApplications is up to how many applications are looked up by their index.
const maxRelatedApplications = 2000

// relatedConditions select by application and cluster.
func (c *searchConditions) relatedConditions(d *dialect, q *SearchQuery) conditions {
	r := q.Related
	application, cluster := condition{"o.application <> ''", nil}, condition{"o.cluster NOT IN ('', '" + unclustered + "')", nil}
	switch {
	case isSpanning(q.Text):
		application = both(application, d.contains("CONCAT("+literal(r.ApplicationPrefix)+", o.application)", q.Text))
		cluster = both(cluster, d.contains("CONCAT("+literal(r.ClusterPrefix)+", "+accountName+", ':', o.application, ':', o.cluster)", q.Text))
	default:
		if !strings.Contains(r.ApplicationPrefix, q.Text) {
			application = d.contains("o.application", q.Text)
		}
		if !strings.Contains(r.ClusterPrefix, q.Text) {
			cluster = both(cluster, anyOf(d.in("o.account_id", idsContaining(c.accounts, q.Text)), d.contains("o.application", q.Text),
				d.contains("o.cluster", q.Text)))
		}
	}
	where := conditions{anyOf(application, cluster), anyOf(
		d.in("o.kind_id", idsWhere(c.kinds, func(kind vedette.Kind) bool { return slices.Contains(r.Kinds, kind) })),
		d.in("o.account_id", idsWhere(c.accounts, func(account vedette.AccountName) bool { return r.AllKinds[account] })))}
	if len(r.Applications) <= maxRelatedApplications {
		where = append(where, isOneOf("o.application", r.Applications, maxApplication))
	}
	return where
}

// isSpanning reports whether a text can be in several parts of a key.
func isSpanning(text string) bool { return strings.ContainsAny(text, ":*") }

// accountName is the name of the row's account, without a join, which would change the order in
// which databases read tables.
const accountName = "(SELECT a.name FROM accounts a WHERE a.id = o.account_id)"

// literal returns a constant of a key in SQL. It is not a parameter, because PostgreSQL cannot
// tell the type of a parameter of CONCAT. Characters that keys do not have are replaced.
func literal(text string) string {
	return "'" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".:-_", r) {
			return r
		}
		return '_'
	}, text) + "'"
}

// shown leaves out what views do not show. The second byte of the stored attributes has flags.
func (c *searchConditions) shown(d *dialect, q *SearchQuery) condition {
	onlyManaged := idsWhere(c.accounts, func(account vedette.AccountName) bool { return q.OnlyManaged[account] })
	visible := condition{d.flags("o.attributes") + " NOT IN ('1','3','5','7','9','B','D','F')", nil}
	if len(onlyManaged) == 0 {
		return visible
	}
	managed := condition{d.flags("o.attributes") + " IN ('2','6','A','E')", nil}
	restricted := d.in("o.account_id", onlyManaged)
	return both(visible, anyOf(condition{"NOT (" + restricted.sql + ")", restricted.args}, managed))
}

func anyOf(conds ...condition) condition {
	sqls, args := make([]string, len(conds)), []any{}
	for i, c := range conds {
		sqls[i] = c.sql
		args = append(args, c.args...)
	}
	return condition{"(" + strings.Join(sqls, " OR ") + ")", args}
}

func both(x, y condition) condition {
	return condition{"(" + x.sql + " AND " + y.sql + ")", slices.Concat(x.args, y.args)}
}

func sortedIDs[V any](byID map[int64]V) []int64 {
	ids := make([]int64, 0, len(byID))
	for id := range byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// idsWhere returns the ids of the values that meet a condition, sorted.
func idsWhere[V any](byID map[int64]V, meets func(V) bool) []int64 {
	return slices.DeleteFunc(sortedIDs(byID), func(id int64) bool { return !meets(byID[id]) })
}

func idsContaining[N ~string](names map[int64]N, text string) []int64 {
	return idsWhere(names, func(name N) bool { return strings.Contains(string(name), text) })
}
