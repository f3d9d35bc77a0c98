package write

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

type clusterCount struct{ objects, managed int64 }

// clusterDelta is what a transaction adds to the counts of clusters.
type clusterDelta map[catalog.ClusterKey]clusterCount

// add counts one object, or takes it away if n is -1.
func (d clusterDelta) add(key catalog.ClusterKey, managed bool, n int64) {
	if key.Application == "" || key.Cluster == "" {
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

// applyClusters writes the counts, and deletes the rows of clusters that have no object any more. The
// account's row is locked.
func (w *Writer) applyClusters(ctx context.Context, tx *sqldb.Tx, accountID int64, d clusterDelta) error {
	if len(d) == 0 {
		return nil
	}
	keys := slices.SortedFunc(maps.Keys(d), catalog.ClusterKey.Compare)
	var rows [][]any
	var decreased []catalog.ClusterKey
	for _, key := range keys {
		rows = append(rows, []any{accountID, key.Application, key.Cluster, d[key].objects, d[key].managed})
		if d[key].objects < 0 {
			decreased = append(decreased, key)
		}
	}
	if err := tx.Insert(ctx, "clusters", clusterColumns, rows, w.dialect.onConflictAdd("clusters",
		[]string{"account_id", "application", "cluster"}, []string{"objects", "managed"})); err != nil {
		return err
	}
	return deleteEmptyClusters(ctx, tx, accountID, decreased)
}

var clusterColumns = sqldb.Columns("account_id integer", "application text", "cluster text", "objects integer", "managed integer")

func deleteEmptyClusters(ctx context.Context, tx *sqldb.Tx, accountID int64, keys []catalog.ClusterKey) error {
	for chunk := range slices.Chunk(keys, 128) {
		args := []any{accountID}
		for _, key := range chunk {
			args = append(args, key.Application, key.Cluster)
		}
		anyKey := strings.TrimSuffix(strings.Repeat("application = ? AND cluster = ? OR ", len(chunk)), " OR ")
		if _, err := tx.Exec(ctx, sqldb.Named("delete empty clusters", `DELETE FROM clusters WHERE account_id = ? AND objects <= 0 AND (`+anyKey+`)`), args...); err != nil {
			return err
		}
	}
	return nil
}
