// Package oracle compares what a database of the product has stored with what a cluster has. It reads the database without the product's
// code.
package oracle

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
)

// Row identifies an object in the store. Kind is the kind with its group, as in "Deployment.apps".
type Row struct{ Account, Kind, Namespace, Name string }

func (r Row) String() string {
	return fmt.Sprintf("%s: %s %s/%s", r.Account, r.Kind, r.Namespace, r.Name)
}

// State maps objects to their uid and resourceVersion as Version returns them.
type State map[Row]string

// Version returns what is compared of an object.
func Version(uid, resourceVersion string) string { return uid + " at " + resourceVersion }

// FeedKey identifies a feed.
type FeedKey struct{ Account, Kind, Namespace string }

// FeedRow is a feed in the store.
type FeedRow struct {
	State, Message string
	Objects        int
}

// Stored returns all objects and feeds of a database. It includes accounts without a name, whose data is being removed.
func Stored(ctx context.Context, db *sql.DB) (State, map[FeedKey]FeedRow, error) {
	objects, feeds := State{}, map[FeedKey]FeedRow{}
	err := ForEachRow(ctx, db, `SELECT COALESCE(a.name, '(removed)'), k.name, k.grp, o.namespace, o.name, o.uid, o.version
		FROM objects o JOIN kinds k ON k.id = o.kind_id LEFT JOIN accounts a ON a.id = o.account_id`, func(rows *sql.Rows) error {
		var r Row
		var group, version string
		var uid []byte
		err := rows.Scan(&r.Account, &r.Kind, &group, &r.Namespace, &r.Name, &uid, &version)
		r.Kind += "." + group
		objects[r] = Version(formatUID(uid), version)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	state, err := shownState(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	return objects, feeds, ForEachRow(ctx, db, `SELECT COALESCE(a.name, '(removed)'), k.name, k.grp, f.namespace, `+state+`, f.message, f.objects
		FROM feeds f JOIN kinds k ON k.id = f.kind_id LEFT JOIN accounts a ON a.id = f.account_id`, func(rows *sql.Rows) error {
		var k FeedKey
		var f FeedRow
		var group string
		err := rows.Scan(&k.Account, &k.Kind, &group, &k.Namespace, &f.State, &f.Message, &f.Objects)
		k.Kind += "." + group
		feeds[k] = f
		return err
	})
}

// resumedTerm is the version of the schema since which an account's row may say that its feeds are pending.
const resumedTerm = 21

// shownState returns the expression for the state of a feed as readers see it.
func shownState(ctx context.Context, db *sql.DB) (string, error) {
	var version int
	if err := db.QueryRowContext(ctx, `SELECT MAX(version_id) FROM schema_version`).Scan(&version); err != nil || version < resumedTerm {
		return `f.state`, err
	}
	return `CASE WHEN a.resumed_term = a.term AND f.state IN ('live', 'syncing') THEN 'pending' ELSE f.state END`, nil
}

// ForEachRow passes each row of a query to scan.
func ForEachRow(ctx context.Context, db *sql.DB, query string, scan func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// formatUID formats a stored uid as Kubernetes does.
func formatUID(uid []byte) string {
	h := hex.EncodeToString(uid)
	if len(h) != 32 {
		return "malformed uid " + h
	}
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// CompareObjects describes the differences between the objects of clusters (want) and those that are stored (got).
func CompareObjects(want, got State) (found []string) {
	for r, version := range want {
		if got[r] == "" {
			found = append(found, fmt.Sprintf("missing: %s is %s in the cluster and not stored", r, version))
		} else if got[r] != version {
			found = append(found, fmt.Sprintf("outdated: %s is %s in the cluster and stored as %s", r, version, got[r]))
		}
	}
	for r, version := range got {
		if want[r] == "" {
			found = append(found, fmt.Sprintf("stale: %s does not exist in the cluster and is stored as %s", r, version))
		}
	}
	return found
}

// CompareFeeds checks that exactly the wanted feeds exist, that they are live, and that their object counts are correct.
func CompareFeeds(want map[FeedKey]bool, got map[FeedKey]FeedRow, objects State) (found []string) {
	counts := map[FeedKey]int{}
	for r := range objects {
		key := FeedKey{r.Account, r.Kind, r.Namespace}
		if _, isNamespaced := got[key]; !isNamespaced {
			key.Namespace = ""
		}
		counts[key]++
	}
	for key := range want {
		if _, ok := got[key]; !ok {
			found = append(found, fmt.Sprintf("feed %v is not declared", key))
		}
	}
	for key, f := range got {
		switch {
		case !want[key]:
			found = append(found, fmt.Sprintf("feed %v is declared, but should not be", key))
		case f.State != "live":
			found = append(found, fmt.Sprintf("feed %v is %s: %s", key, f.State, f.Message))
		case f.Objects != counts[key]:
			found = append(found, fmt.Sprintf("feed %v has a count of %d, but %d objects", key, f.Objects, counts[key]))
		}
	}
	return found
}
