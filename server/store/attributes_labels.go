package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
)

// addPodLabels fills in the labels of Pods, which are not among their encoded attributes: Pods of
// one workload share a label set, and so do the rows share the map, which no one may change. A
// label set that was deleted since the rows were read leaves a Pod without labels; then the
// versions of its namespace have changed, too.
func (s *Store) addPodLabels(ctx context.Context, rows []AttributesRow, labelsets []int64) error {
	var ids []int64
	for i := range rows {
		if isPod(&rows[i]) && labelsets[i] != 0 {
			ids = append(ids, labelsets[i])
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	sets, err := s.readLabelsets(ctx, slices.Compact(ids))
	for i := range rows {
		if isPod(&rows[i]) {
			rows[i].Labels = sets[labelsets[i]]
		}
	}
	return err
}

func isPod(r *AttributesRow) bool { return r.Kind.Name == "Pod" && r.Kind.Group == "" }

// readLabelsets returns label sets by their ids.
func (s *Store) readLabelsets(ctx context.Context, ids []int64) (map[int64]map[string]string, error) {
	sets := make(map[int64]map[string]string, len(ids))
	where, args := conditions{s.dialect.in("id", ids)}.where()
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
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
		return nil
	}, `SELECT id, labels FROM labelsets`+where, args...)
	return sets, err
}
