package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/vedette-io/vedette"
)

// parseSelector parses a label selector with the code of Kubernetes.
func parseSelector(selector string) (labels.Selector, error) {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the label selector %.200q cannot be read: %w", selector, err)
	}
	return parsed, nil
}

// matchLabelsets returns the label sets that a selector matches, including the empty set 0. The
// index finds the sets that have the labels that the selector requires; the code of Kubernetes
// then decides.
func (s *Store) matchLabelsets(ctx context.Context, selector labels.Selector, accounts []int64) ([]int64, error) {
	ids := []int64{}
	if selector.Matches(labels.Set(nil)) {
		ids = append(ids, 0)
	}
	var where conditions
	if accounts != nil {
		where = append(where, s.dialect.in("l.account_id", accounts))
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
	clause, args := where.where()
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
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
	}, `SELECT l.id, l.labels FROM labelsets l`+clause, args...)
	return ids, err
}

// labelCondition returns the condition that a set has the label that a requirement needs. There is
// none if a set may match because it lacks the label.
func labelCondition(r labels.Requirement) (condition, bool) {
	const subquery = `l.id IN (SELECT labelset FROM labels WHERE name = ?`
	args := []any{sanitize(r.Key(), maxLabelName)}
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		values := r.Values().UnsortedList()
		for _, v := range values {
			args = append(args, sanitize(v, maxLabelValue))
		}
		return condition{subquery + ` AND value IN (` + placeholders(len(values)) + `))`, args}, true
	case selection.Exists, selection.GreaterThan, selection.LessThan:
		return condition{subquery + `)`, args}, true
	}
	return condition{}, false
}
