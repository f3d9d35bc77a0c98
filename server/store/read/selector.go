package read

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Limits of a label selector. Each requirement is a subquery and is compared with each set of labels, and
// each value is a parameter of a statement, of which databases allow some ten thousand.
const (
	maxSelectorBytes        = 8 << 10
	maxSelectorRequirements = 50
	maxSelectorValues       = 500 // of all requirements together
)

// ParseSelector parses a label selector with the code of Kubernetes. The error is vedette.Invalid if it
// cannot be read, or has more requirements or values than a query may have.
func ParseSelector(selector string) (labels.Selector, error) {
	if len(selector) > maxSelectorBytes {
		return nil, vedette.Errorf(vedette.Invalid, "the label selector has %d bytes, more than the limit of %d: select by fewer values", len(selector),
			maxSelectorBytes)
	}
	parsed, err := labels.Parse(selector)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the label selector %.200q cannot be read: %w", selector, err)
	}
	requirements, _ := parsed.Requirements()
	values := 0
	for _, r := range requirements {
		values += len(r.ValuesUnsorted())
	}
	if len(requirements) > maxSelectorRequirements || values > maxSelectorValues {
		return nil, vedette.Errorf(vedette.Invalid, "the label selector has %d requirements with %d values, more than the limits of %d and %d: "+
			"select by fewer values", len(requirements), values, maxSelectorRequirements, maxSelectorValues)
	}
	return parsed, nil
}

// matchLabelsets returns the label sets that a selector matches, including the empty set 0. The
// index finds the sets that have the labels that the selector requires; the code of Kubernetes
// then decides.
func (r *Reader) matchLabelsets(ctx context.Context, selector labels.Selector, accounts []int64) ([]int64, error) {
	ids := []int64{}
	if selector.Matches(labels.Set(nil)) {
		ids = append(ids, 0)
	}
	var where sqldb.Conditions
	if accounts != nil {
		where = append(where, r.db.Dialect.In("l.account_id", accounts))
	}
	requirements, selectable := selector.Requirements()
	if !selectable {
		return ids, nil
	}
	for _, r := range requirements {
		if c, ok := labelCondition(r); ok {
			where = append(where, c)
		}
	}
	clause, args := where.Where()
	err := r.db.QueryEachAnywhere(ctx, func(rows *sql.Rows) error {
		var id int64
		var text []byte
		if err := rows.Scan(&id, &text); err != nil {
			return err
		}
		var set labels.Set
		if err := json.Unmarshal(text, &set); err != nil {
			return fmt.Errorf("read label set %d: %w", id, err)
		}
		if selector.Matches(set) {
			ids = append(ids, id)
		}
		return nil
	}, sqldb.Named("match label sets", `SELECT l.id, l.labels FROM labelsets l`+clause), args...)
	return ids, err
}

// labelCondition returns the condition that a set has the label that a requirement needs. There is
// none if a set may match because it lacks the label.
func labelCondition(r labels.Requirement) (sqldb.Condition, bool) {
	const subquery = `l.id IN (SELECT labelset FROM labels WHERE name = ?`
	args := []any{sqldb.Sanitize(r.Key(), sqldb.MaxLabelName)}
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		values := r.Values().UnsortedList()
		for _, v := range values {
			args = append(args, sqldb.Sanitize(v, sqldb.MaxLabelValue))
		}
		return sqldb.Cond(subquery+` AND value IN (`+sqldb.Placeholders(len(values))+`))`, args...), true
	case selection.Exists, selection.GreaterThan, selection.LessThan:
		return sqldb.Cond(subquery+`)`, args...), true
	}
	return sqldb.Condition{}, false
}
