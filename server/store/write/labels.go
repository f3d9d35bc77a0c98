package write

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Objects of one workload have the same labels, so each label set is stored once per
// account, and objects refer to it. Set 0 is empty.

// ensureLabelsets returns the ids of label sets by their hashes, and how many it has inserted. The
// account's row is locked, so no set is deleted meanwhile.
func ensureLabelsets(ctx context.Context, tx *sqldb.Tx, accountID int64, sets map[int64]map[string]string) (ids map[int64]int64,
	created int, err error) {
	ids, err = findLabelsets(ctx, tx, accountID, slices.Collect(maps.Keys(sets)))
	if err != nil || len(ids) == len(sets) {
		return ids, 0, err
	}
	missing := make([]int64, 0, len(sets)-len(ids))
	for hash := range sets {
		if _, ok := ids[hash]; !ok {
			missing = append(missing, hash)
		}
	}
	slices.Sort(missing)
	if err := insertLabelsets(ctx, tx, accountID, missing, sets); err != nil {
		return nil, 0, err
	}
	added, err := findLabelsets(ctx, tx, accountID, missing)
	if err != nil {
		return nil, 0, err
	}
	maps.Copy(ids, added)
	return ids, len(added), insertLabels(ctx, tx, added, sets)
}

func findLabelsets(ctx context.Context, tx *sqldb.Tx, accountID int64, hashes []int64) (map[int64]int64, error) {
	ids := make(map[int64]int64, len(hashes))
	where, args := sqldb.Conditions{sqldb.Cond("account_id = ?", accountID), tx.Dialect.In("hash", hashes)}.Where()
	err := tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var id, hash int64
		err := rows.Scan(&id, &hash)
		ids[hash] = id
		return err
	}, sqldb.Named("find label sets", `SELECT id, hash FROM labelsets`+where), args...)
	if err != nil {
		return nil, err
	}
	return ids, nil
}

func insertLabelsets(ctx context.Context, tx *sqldb.Tx, accountID int64, hashes []int64, sets map[int64]map[string]string) error {
	rows := make([][]any, len(hashes))
	for i, hash := range hashes {
		text, err := json.Marshal(sets[hash])
		if err != nil {
			return fmt.Errorf("marshal labels: %w", err)
		}
		rows[i] = []any{hash, accountID, string(text)}
	}
	return tx.Insert(ctx, "labelsets", labelsetColumns, rows, "")
}

func insertLabels(ctx context.Context, tx *sqldb.Tx, ids map[int64]int64, sets map[int64]map[string]string) error {
	var rows [][]any
	for hash, id := range ids {
		// Names that Kubernetes does not allow may become equal.
		cleaned := make(map[string]string, len(sets[hash]))
		for name, value := range sets[hash] {
			cleaned[sqldb.Sanitize(name, sqldb.MaxLabelName)] = sqldb.Sanitize(value, sqldb.MaxLabelValue)
		}
		for name, value := range cleaned {
			rows = append(rows, []any{id, name, value})
		}
	}
	slices.SortFunc(rows, func(a, b []any) int {
		return cmp.Or(cmp.Compare(a[0].(int64), b[0].(int64)), cmp.Compare(a[1].(string), b[1].(string)))
	})
	return tx.Insert(ctx, "labels", labelColumns, rows, "")
}

var (
	labelsetColumns = sqldb.Columns("hash bigint", "account_id integer", "labels text")
	labelColumns    = sqldb.Columns("labelset bigint", "name text", "value text")
)

// deleteUnusedLabelsets deletes the label sets that no object of the account has any more. The
// account's row is locked.
func deleteUnusedLabelsets(ctx context.Context, tx *sqldb.Tx, accountID int64) error {
	var unused []int64
	err := tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		unused = append(unused, id)
		return err
	}, sqldb.Named("find unused label sets", `SELECT l.id FROM labelsets l WHERE l.account_id = ? AND NOT EXISTS (SELECT 1 FROM objects o WHERE o.labelset = l.id)`), accountID)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(unused, 1000) {
		where, args := sqldb.Conditions{tx.Dialect.In("labelset", chunk)}.Where()
		if _, err := tx.Exec(ctx, sqldb.Named("delete unused labels", `DELETE FROM labels`+where), args...); err != nil {
			return err
		}
		where, args = sqldb.Conditions{tx.Dialect.In("id", chunk)}.Where()
		if _, err := tx.Exec(ctx, sqldb.Named("delete unused label sets", `DELETE FROM labelsets`+where), args...); err != nil {
			return err
		}
	}
	return nil
}

// collectThreshold is how many sets an account gains before its unused sets are collected. Each
// job and each rollout leaves a set behind.
const collectThreshold = 4096

// labelGC counts the sets that accounts have gained since the last collection. A process does not know what earlier ones have
// counted, so each count begins at a random number: accounts that move between servers all the time are collected as often as others.
type labelGC struct {
	mu    sync.Mutex
	added map[int64]int // by account
}

// due adds to an account's count, and reports whether to collect now. If so, the count starts
// over.
func (l *labelGC) due(accountID int64, added int) bool {
	if added == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.added == nil {
		l.added = map[int64]int{}
	}
	count, isKnown := l.added[accountID]
	if !isKnown {
		count = rand.IntN(collectThreshold)
	}
	count += added
	l.added[accountID] = count % collectThreshold
	return count >= collectThreshold
}

// collectLabels collects an account's unused sets if it is time. The caller holds the account's
// lock. A failure does not affect the commit, because a later one tries again.
func (w *Writer) collectLabels(ctx context.Context, p *plan) {
	if !w.labelGC.due(p.baseline.accountID, p.addedLabelsets) {
		return
	}
	err := w.db.WriteLowPriority(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		if _, err := registry.LockAccountRow(ctx, tx, p.batch.Account, p.batch.Term); err != nil {
			return err
		}
		return deleteUnusedLabelsets(ctx, tx, p.baseline.accountID)
	})
	if err != nil {
		w.db.Log.Warn("collecting unused label sets failed; a later commit retries", "account", p.batch.Account, "error", err)
	}
}
