package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The table clusters counts the objects of which Spinnaker's clusters consist, by account,
// application and cluster. Each transaction that changes objects changes the counts too.

// unclustered counts the load balancers and security groups of an application, which are in no
// cluster. It sorts first. A cluster of that name gets another one.
const unclustered = "\x01"

// clusterKey is a cluster of an account. The cluster is empty for objects that count in none.
type clusterKey struct{ application, cluster string }

func (k clusterKey) compare(other clusterKey) int {
	return cmp.Or(cmp.Compare(k.application, other.application), cmp.Compare(k.cluster, other.cluster))
}

type clusterCount struct{ objects, managed int64 }

// clusterDelta is what a transaction adds to the counts of clusters.
type clusterDelta map[clusterKey]clusterCount

// add counts one object, or takes it away if n is -1.
func (d clusterDelta) add(key clusterKey, managed bool, n int64) {
	if key.application == "" || key.cluster == "" {
		return
	}
	count := d[key]
	count.objects += n
	if managed {
		count.managed += n
	}
	if count == (clusterCount{}) {
		delete(d, key)
		return
	}
	d[key] = count
}

// apply writes the counts, and deletes the rows of clusters that have no object any more. The
// account's row is locked.
func (d clusterDelta) apply(ctx context.Context, tx *transaction, accountID int64) error {
	if len(d) == 0 {
		return nil
	}
	keys := slices.SortedFunc(maps.Keys(d), clusterKey.compare)
	var rows [][]any
	var decreased []clusterKey
	for _, key := range keys {
		rows = append(rows, []any{accountID, key.application, key.cluster, d[key].objects, d[key].managed})
		if d[key].objects < 0 {
			decreased = append(decreased, key)
		}
	}
	if err := tx.dialect.insert(ctx, tx, "clusters", clusterColumns, rows, tx.dialect.onConflictAdd("clusters",
		[]string{"account_id", "application", "cluster"}, []string{"objects", "managed"})); err != nil {
		return err
	}
	return deleteEmptyClusters(ctx, tx, accountID, decreased)
}

var clusterColumns = []columnSpec{{"account_id", "integer"}, {"application", "text"}, {"cluster", "text"}, {"objects", "integer"},
	{"managed", "integer"}}

func deleteEmptyClusters(ctx context.Context, tx *transaction, accountID int64, keys []clusterKey) error {
	for chunk := range slices.Chunk(keys, 128) {
		args := []any{accountID}
		for _, key := range chunk {
			args = append(args, key.application, key.cluster)
		}
		anyKey := strings.TrimSuffix(strings.Repeat("application = ? AND cluster = ? OR ", len(chunk)), " OR ")
		if _, err := tx.exec(ctx, `DELETE FROM clusters WHERE account_id = ? AND objects <= 0 AND (`+anyKey+`)`, args...); err != nil {
			return fmt.Errorf("delete empty clusters: %w", err)
		}
	}
	return nil
}
