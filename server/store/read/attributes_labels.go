package read

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// onlyPods reports whether Pods are the only kind. Their labels are not among the encoded
// attributes, where they would take more than all else.
func onlyPods(kinds []vedette.Kind) bool {
	return len(kinds) == 1 && kinds[0] == vedette.Kind{Name: "Pod"}
}

// addLabels fills in the labels of rows by their label sets. Pods of one workload share a label
// set, so the rows share the map, which no one may change. A label set that was deleted since the
// rows were read leaves a row without labels; then the version of its namespace has changed, too.
func (r *Reader) addLabels(ctx context.Context, rows []AttributesRow, labelsets []int64) error {
	ids := slices.Clone(labelsets)
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id int64) bool { return id == 0 }) // the empty set
	if len(ids) == 0 {
		return nil
	}
	sets, err := r.readLabelsets(ctx, ids)
	for i := range rows {
		rows[i].Labels = sets[labelsets[i]]
	}
	return err
}

// readLabelsets returns label sets by their ids.
func (r *Reader) readLabelsets(ctx context.Context, ids []int64) (map[int64]map[string]string, error) {
	sets, budget := make(map[int64]map[string]string, len(ids)), rowBudgetOf(ctx)
	where, args := sqldb.Conditions{r.db.Dialect.In("id", ids)}.Where()
	err := r.db.QueryEachAnywhere(ctx, func(rows *sql.Rows) error {
		var id int64
		var text sql.RawBytes
		if err := rows.Scan(&id, &text); err != nil {
			return err
		}
		var set map[string]string
		if err := json.Unmarshal(text, &set); err != nil {
			return fmt.Errorf("read label set %d: %w", id, err)
		}
		sets[id] = set
		return budget.take(mapBytes(set))
	}, sqldb.Named("read label sets", `SELECT id, labels FROM labelsets`+where), args...)
	return sets, err
}
