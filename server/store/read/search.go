package read

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/namefilter"
	"github.com/vedette-io/vedette/server/store/sqldb"
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
func (r *Reader) Search(ctx context.Context, q SearchQuery) ([]SearchRow, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	for range maxSearchAttempts {
		found, err := r.searchOnce(ctx, q)
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

// Validate returns an error of kind vedette.Invalid if the limit or the offset is out of range.
func (q *SearchQuery) Validate() error {
	if q.Limit < 0 || q.Offset < 0 {
		return vedette.Errorf(vedette.Invalid, "search objects: the limit %d or the offset %d is negative", q.Limit, q.Offset)
	}
	return nil
}

func (r *Reader) searchOnce(ctx context.Context, q SearchQuery) ([]SearchRow, error) {
	c, err := r.searchConditions(ctx, &q)
	if err != nil || c.empty {
		return nil, r.db.WrapError("search objects", err)
	}
	var found []SearchRow
	clause, args := c.clause(r)
	err = r.db.QueryEachAnywhere(ctx, func(rows *sql.Rows) error {
		var accountID, kindID int64
		var r SearchRow
		if err := rows.Scan(&accountID, &kindID, &r.Namespace, &r.Name, &r.Application, &r.Cluster); err != nil {
			return err
		}
		if r.Cluster == catalog.Unclustered {
			r.Cluster = ""
		}
		r.Account, r.Kind = c.accounts[accountID], c.kinds[kindID]
		found = append(found, r)
		return nil
	}, sqldb.Named("search objects", fmt.Sprintf(`SELECT o.account_id, o.kind_id, o.namespace, o.name, o.application, o.cluster FROM %s%s
		ORDER BY o.account_id, o.kind_id, o.namespace, o.name LIMIT %d OFFSET %d`, c.tables, clause, q.Limit, q.Offset)), args...)
	return found, r.db.WrapError("search objects", err)
}

// CountSearch returns how many objects all pages have. It takes as many statements as Search.
func (r *Reader) CountSearch(ctx context.Context, q SearchQuery) (int64, error) {
	c, err := r.searchConditions(ctx, &q)
	if err != nil || c.empty {
		return 0, r.db.WrapError("count objects", err)
	}
	var n int64
	clause, args := c.clause(r)
	err = r.db.QueryOneAnywhere(ctx, sqldb.ScanInto(&n), sqldb.Named("count found objects", `SELECT COUNT(*) FROM `+c.tables+clause), args...)
	return n, r.db.WrapError("count objects", err)
}

// searchConditions is a query in SQL.
type searchConditions struct {
	tables   string
	where    sqldb.Conditions
	accounts map[int64]vedette.AccountName
	kinds    map[int64]vedette.Kind
	names    map[int64]string // of kinds, in keys
	empty    bool             // nothing can be found
	// AccountCondition does not name the accounts if they are all: PostgreSQL would sort all objects
	// before it stops at the limit.
	accountCondition sqldb.Condition
}

// clause returns the WHERE clause and its arguments. How many objects match depends so much on the
// arguments that a plan for all arguments, which PostgreSQL uses from the sixth execution on, takes
// two to three times as long.
func (c *searchConditions) clause(r *Reader) (string, []any) {
	clause, args := c.where.Where()
	if r.dialect.planEach != nil {
		args = append([]any{r.dialect.planEach}, args...)
	}
	return clause, args
}

func (r *Reader) searchConditions(ctx context.Context, q *SearchQuery) (*searchConditions, error) {
	c := &searchConditions{accounts: map[int64]vedette.AccountName{}, kinds: map[int64]vedette.Kind{}, names: map[int64]string{}}
	if err := c.readAccounts(ctx, r, q); err != nil {
		return nil, err
	}
	if err := c.readKinds(ctx, r, q); err != nil {
		return nil, err
	}
	kinds := sortedIDs(c.kinds)
	c.leaveOutAccounts(ctx, r, q, kinds)
	c.empty = !sqldb.IsValidText(q.Text, maxSearchText) || len(c.accounts) == 0 || len(kinds) == 0 ||
		q.Related != nil && len(q.Related.Applications) == 0
	if c.empty {
		return c, nil
	}
	var keys sqldb.Conditions
	if q.Related == nil {
		keys = c.keyConditions(r, q)
	}
	if q.Related == nil && len(keys) == 0 && r.dialect.seeksByAccount { // only the kind is known, which is not the first column of the key
		c.accountCondition = r.db.Dialect.In("o.account_id", sortedIDs(c.accounts))
	}
	c.where = sqldb.Conditions{r.db.Dialect.In("o.kind_id", kinds), c.accountCondition}
	for _, f := range []struct{ column, value string }{{"o.namespace", q.Namespace}, {"o.name", q.Name}} {
		if f.value != "" {
			c.where = append(c.where, sqldb.Equals(f.column, f.value, sqldb.MaxName))
		}
	}
	if q.Related == nil {
		c.tables = "objects o" + r.db.Dialect.KeyHint
		c.where = append(c.where, keys...)
		if r.dialect.keyRange != "" {
			c.where = append(c.where, sqldb.Cond(r.dialect.keyRange))
		}
	} else {
		c.tables = "objects o"
		c.where = append(c.where, c.relatedConditions(r, q)...)
	}
	c.where = append(c.where, c.shown(r, q))
	return c, c.addRules(ctx, r, q)
}

func (c *searchConditions) readAccounts(ctx context.Context, r *Reader, q *SearchQuery) error {
	names, err := r.names.Read(ctx)
	if err != nil {
		return err
	}
	for id, name := range names.Visible {
		if q.CanRead == nil || q.CanRead(name) {
			c.accounts[id] = name
		}
	}
	c.accountCondition = r.db.Dialect.In("o.account_id", sortedIDs(c.accounts))
	if len(c.accounts) == len(names.Visible) {
		c.accountCondition = r.db.Dialect.NotIn("o.account_id", names.Hidden)
	}
	return nil
}

// leaveOutAccounts leaves out the accounts that cannot have what is searched for. If most may have
// it, all are read: the condition would cost more than the rows of the others.
func (c *searchConditions) leaveOutAccounts(ctx context.Context, r *Reader, q *SearchQuery, kinds []int64) {
	if q.Related != nil {
		return
	}
	r.searched.Store(new(time.Now()))
	if !r.db.KnowsWrites() || !r.versions.IsCurrent() || r.db.CheckLease(ctx) != nil {
		return
	}
	pattern, candidates := q.namePattern(c), map[int64]vedette.AccountName{}
	for id, name := range c.accounts {
		if len(pattern) > 0 && strings.Contains(string(name), q.Text) || r.nameFilters.MayContain(id, pattern, kinds) {
			candidates[id] = name
		}
	}
	if len(candidates) <= len(c.accounts)/2 {
		c.accounts, c.accountCondition = candidates, r.db.Dialect.In("o.account_id", sortedIDs(candidates))
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
func (c *searchConditions) readKinds(ctx context.Context, r *Reader, q *SearchQuery) error {
	if !r.db.IsOnlyWriter() {
		if err := r.kinds.Load(ctx); err != nil {
			return err
		}
	}
	for id, kind := range r.kinds.Cached() {
		if name := q.KindName(kind); name != "" {
			c.kinds[id], c.names[id] = kind, name
		}
	}
	return nil
}

// keyConditions select by key. The part of a key before the namespace is the same for all objects
// of an account and kind, so it is compared here: either it contains the text, or the text begins
// in it and ends in the rest, or the rest contains the text.
func (c *searchConditions) keyConditions(r *Reader, q *SearchQuery) sqldb.Conditions {
	switch {
	case strings.Contains(q.Text, "*"):
		key := "CONCAT(" + literal(q.KeyPrefix) + ", CASE o.kind_id"
		for _, id := range sortedIDs(c.names) {
			key += fmt.Sprintf(" WHEN %d THEN %s", id, literal(c.names[id]))
		}
		return sqldb.Conditions{r.dialect.contains(key+" END, ':', "+accountName+", ':', o.namespace, ':', o.name)", q.Text)}
	case strings.Contains(q.KeyPrefix, q.Text):
		return nil
	case !strings.Contains(q.Text, ":"):
		return sqldb.Conditions{anyOf(r.db.Dialect.In("o.kind_id", idsContaining(c.names, q.Text)), r.db.Dialect.In("o.account_id",
			idsContaining(c.accounts, q.Text)),
			r.dialect.contains("o.name", q.Text), r.dialect.contains("o.namespace", q.Text))}
	}
	return sqldb.Conditions{c.spanningCondition(r, q)}
}

const namespaceAndName = "CONCAT(o.namespace, ':', o.name)"

// spanningCondition is for a text with colons.
func (c *searchConditions) spanningCondition(r *Reader, q *SearchQuery) sqldb.Condition {
	alternatives := []sqldb.Condition{r.dialect.contains(namespaceAndName, q.Text)}
	for _, kindID := range sortedIDs(c.names) {
		prefix := q.KeyPrefix + c.names[kindID] + ":"
		for rest, accounts := range c.accountsByRest(prefix, q.Text) {
			alternative := both(r.db.Dialect.In("o.kind_id", []int64{kindID}), r.db.Dialect.In("o.account_id", accounts))
			if rest != "" {
				alternative = both(alternative, r.dialect.startsWith(namespaceAndName, rest))
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
func (c *searchConditions) relatedConditions(r *Reader, q *SearchQuery) sqldb.Conditions {
	related := q.Related
	application, cluster := sqldb.Cond("o.application <> ''"), sqldb.Cond("o.cluster NOT IN ('', '"+catalog.Unclustered+"')")
	switch {
	case isSpanning(q.Text):
		application = both(application, r.dialect.contains("CONCAT("+literal(related.ApplicationPrefix)+", o.application)", q.Text))
		key := "CONCAT(" + literal(related.ClusterPrefix) + ", " + accountName + ", ':', o.application, ':', o.cluster)"
		cluster = both(cluster, r.dialect.contains(key, q.Text))
	default:
		if !strings.Contains(related.ApplicationPrefix, q.Text) {
			application = r.dialect.contains("o.application", q.Text)
		}
		if !strings.Contains(related.ClusterPrefix, q.Text) {
			cluster = both(cluster, anyOf(r.db.Dialect.In("o.account_id", idsContaining(c.accounts, q.Text)), r.dialect.contains("o.application",
				q.Text),
				r.dialect.contains("o.cluster", q.Text)))
		}
	}
	where := sqldb.Conditions{anyOf(application, cluster), anyOf(
		r.db.Dialect.In("o.kind_id", idsWhere(c.kinds, func(kind vedette.Kind) bool { return slices.Contains(related.Kinds, kind) })),
		r.db.Dialect.In("o.account_id", idsWhere(c.accounts, func(account vedette.AccountName) bool { return related.AllKinds[account] })))}
	if len(related.Applications) <= maxRelatedApplications {
		where = append(where, sqldb.IsOneOf("o.application", related.Applications, sqldb.MaxApplication))
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
func (c *searchConditions) shown(r *Reader, q *SearchQuery) sqldb.Condition {
	onlyManaged := idsWhere(c.accounts, func(account vedette.AccountName) bool { return q.OnlyManaged[account] })
	visible := sqldb.Cond(r.dialect.flags("o.attributes") + " NOT IN ('1','3','5','7','9','B','D','F')")
	if len(onlyManaged) == 0 {
		return visible
	}
	managed := sqldb.Cond(r.dialect.flags("o.attributes") + " IN ('2','6','A','E')")
	restricted := r.db.Dialect.In("o.account_id", onlyManaged)
	return both(visible, anyOf(sqldb.Cond("NOT ("+restricted.SQL+")", restricted.Args...), managed))
}

func anyOf(conds ...sqldb.Condition) sqldb.Condition {
	sqls, args := make([]string, len(conds)), []any{}
	for i, c := range conds {
		sqls[i] = c.SQL
		args = append(args, c.Args...)
	}
	return sqldb.Cond("("+strings.Join(sqls, " OR ")+")", args...)
}

func both(x, y sqldb.Condition) sqldb.Condition {
	return sqldb.Cond("("+x.SQL+" AND "+y.SQL+")", slices.Concat(x.Args, y.Args)...)
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
