package read

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// ApplicationRule leaves out objects by their application. The database leaves them out, before it makes pages,
// so that pages and counts are as if they did not exist.
type ApplicationRule struct {
	// Shows reports whether to find the objects of an application; "" is for those that belong to none.
	Shows func(application string) bool
	// Kinds are those that the rule is for. Nil means all kinds.
	Kinds []vedette.Kind
}

// Limits of searches with rules.
const (
	// maxSearchedApplications is of how many applications objects may match. A rule names at most half of
	// them, and a database takes about 32,000 parameters.
	maxSearchedApplications = 20_000
	maxSearchAttempts       = 3
)

// MaxSearchNames is how many bytes the names of applications take during a search with rules.
const MaxSearchNames = maxSearchedApplications * 128

// errNewApplication means that an object of a new application was found, which the rules did not leave out.
var errNewApplication = vedette.Errorf(vedette.Unavailable, "applications were added while objects were searched: try again")

// shows reports whether no rule leaves out an object.
func (q *SearchQuery) shows(kind vedette.Kind, application string) bool {
	return !slices.ContainsFunc(q.Rules, func(r ApplicationRule) bool {
		return (r.Kinds == nil || slices.Contains(r.Kinds, kind)) && !r.Shows(application)
	})
}

// addRules adds the conditions of the rules. They name the applications that have objects which match, as
// Fiat and Front50 know no list of those that a caller may not see.
func (c *searchConditions) addRules(ctx context.Context, r *Reader, q *SearchQuery) error {
	if len(q.Rules) == 0 || c.empty {
		return nil
	}
	applications, err := c.applications(ctx, r)
	if err != nil {
		return err
	}
	for _, rule := range q.Rules {
		shown, restricts := rule.condition(applications)
		if !restricts {
			continue
		}
		if rule.Kinds != nil {
			others := idsWhere(c.kinds, func(kind vedette.Kind) bool { return !slices.Contains(rule.Kinds, kind) })
			shown = anyOf(shown, r.db.Dialect.In("o.kind_id", others))
		}
		c.where = append(c.where, shown)
	}
	return nil
}

// applications returns the applications of all objects that match.
func (c *searchConditions) applications(ctx context.Context, r *Reader) ([]string, error) {
	var names []string
	clause, args := c.clause(r)
	err := r.db.QueryEachAnywhere(ctx, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	}, sqldb.Named("find applications", fmt.Sprintf(`SELECT DISTINCT o.application FROM %s%s LIMIT %d`, c.tables, clause, maxSearchedApplications+1)), args...)
	if err == nil && len(names) > maxSearchedApplications {
		err = vedette.Errorf(vedette.Unavailable, "objects of more than %d applications match: search for more of a name", maxSearchedApplications)
	}
	return names, err
}

// condition selects the objects of the applications that the rule shows. The rule may show
// all. The shorter list costs less.
func (r *ApplicationRule) condition(applications []string) (shownOnes sqldb.Condition, restricts bool) {
	var shown, hidden []string
	for _, name := range applications {
		if r.Shows(name) {
			shown = append(shown, name)
		} else {
			hidden = append(hidden, name)
		}
	}
	switch {
	case len(hidden) == 0:
		return sqldb.Condition{}, false
	case len(shown) <= len(hidden):
		return textIn("o.application", shown), true
	}
	not := textIn("o.application", hidden)
	return sqldb.Cond("NOT ("+not.SQL+")", not.Args...), true
}

// textIn is isOneOf for texts that were read from the database.
func textIn(column string, values []string) sqldb.Condition {
	if len(values) == 0 {
		return sqldb.Never
	}
	args := make([]any, len(values))
	for i, value := range values {
		args[i] = value
	}
	return sqldb.Cond(column+" IN ("+sqldb.Placeholders(len(args))+")", args...)
}
