package convergence

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// row identifies an object in the store.
type row struct{ account, kind, namespace, name string }

func (r row) String() string {
	return fmt.Sprintf("%s: %s %s/%s", r.account, r.kind, r.namespace, r.name)
}

// state maps objects to their uid and resourceVersion, which the guarantee is about.
type state map[row]string

// feedRow is a feed in the store.
type feedRow struct {
	state, message string
	objects        int
}

// feedKey identifies a feed.
type feedKey struct{ account, kind, namespace string }

// listed returns a fresh list of every kind of every account, and the feeds that should exist.
func (w *world) listed(ctx context.Context) (state, map[feedKey]bool, error) {
	objects, feeds := state{}, map[feedKey]bool{}
	for _, a := range w.accounts {
		kinds, err := served(ctx, a.cluster)
		if err != nil {
			return nil, nil, err
		}
		for _, k := range kinds {
			for _, namespace := range a.feedsOf(k) {
				feeds[feedKey{a.name, k.groupKind(), namespace}] = true
				if err := a.list(ctx, k, namespace, objects); err != nil {
					return nil, nil, err
				}
			}
		}
	}
	return objects, feeds, nil
}

// feedsOf returns the namespaces in which a kind is watched, or "" for all.
func (a *account) feedsOf(k kind) []string {
	if !k.namespaced || len(a.namespaces) == 0 {
		return []string{""}
	}
	return a.namespaces
}

// served returns the kinds that the cluster serves now.
func served(ctx context.Context, c *cluster) ([]kind, error) {
	var group struct{ Resources []struct{ Kind string } }
	kinds := slices.Clone(builtIn)
	err := c.Get(ctx, "/apis/"+customGroup+"/v1", &group)
	if err != nil && !isNotFound(err) {
		return nil, err
	}
	for _, k := range custom {
		if slices.ContainsFunc(group.Resources, func(r struct{ Kind string }) bool { return r.Kind == k.name }) {
			kinds = append(kinds, k)
		}
	}
	return kinds, nil
}

func (a *account) list(ctx context.Context, k kind, namespace string, into state) error {
	var list struct {
		Items []struct {
			Metadata struct{ Namespace, Name, UID, ResourceVersion string }
		}
	}
	if err := a.cluster.Get(ctx, k.list(namespace), &list); err != nil {
		return err
	}
	for _, item := range list.Items {
		m := item.Metadata
		into[row{a.name, k.groupKind(), m.Namespace, m.Name}] = m.UID + " at " + m.ResourceVersion
	}
	return nil
}

// stored returns the same from the database. It includes accounts without a name, whose data is
// being removed.
func (w *world) stored(ctx context.Context) (state, map[feedKey]feedRow, error) {
	objects, feeds := state{}, map[feedKey]feedRow{}
	err := w.forEachRow(ctx, `SELECT COALESCE(a.name, '(removed)'), k.name, k.grp, o.namespace, o.name, o.uid, o.version
		FROM objects o JOIN kinds k ON k.id = o.kind_id LEFT JOIN accounts a ON a.id = o.account_id`, func(rows *sql.Rows) error {
		var r row
		var group, version string
		var uid []byte
		err := rows.Scan(&r.account, &r.kind, &group, &r.namespace, &r.name, &uid, &version)
		r.kind += "." + group
		objects[r] = formatUID(uid) + " at " + version
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return objects, feeds, w.forEachRow(ctx, `SELECT COALESCE(a.name, '(removed)'), k.name, k.grp, f.namespace, f.state, f.message, f.objects
		FROM feeds f JOIN kinds k ON k.id = f.kind_id LEFT JOIN accounts a ON a.id = f.account_id`, func(rows *sql.Rows) error {
		var k feedKey
		var f feedRow
		var group string
		err := rows.Scan(&k.account, &k.kind, &group, &k.namespace, &f.state, &f.message, &f.objects)
		k.kind += "." + group
		feeds[k] = f
		return err
	})
}

func (w *world) forEachRow(ctx context.Context, query string, scan func(*sql.Rows) error) error {
	rows, err := w.db.sql.QueryContext(ctx, query)
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

// differences describes the differences between store and clusters.
func (w *world) differences(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	want, feeds, err := w.listed(ctx)
	if err != nil {
		return []string{"the clusters cannot be listed: " + err.Error()}
	}
	got, rows, err := w.stored(ctx)
	if err != nil {
		return []string{"the database cannot be read: " + err.Error()}
	}
	found := slices.Concat(compareObjects(want, got), compareFeeds(feeds, rows, got), w.roleDifferences(ctx), w.staleAccounts(ctx))
	slices.Sort(found)
	return found
}

func compareObjects(want, got state) (found []string) {
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

// compareFeeds checks that exactly the wanted feeds exist, that they are live, and that their
// object counts are correct.
func compareFeeds(want map[feedKey]bool, got map[feedKey]feedRow, objects state) (found []string) {
	counts := map[feedKey]int{}
	for r := range objects {
		key := feedKey{r.account, r.kind, r.namespace}
		if _, isNamespaced := got[key]; !isNamespaced {
			key.namespace = ""
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
		case f.state != "live":
			found = append(found, fmt.Sprintf("feed %v is %s: %s", key, f.state, f.message))
		case f.objects != counts[key]:
			found = append(found, fmt.Sprintf("feed %v has a count of %d, but %d objects", key, f.objects, counts[key]))
		}
	}
	return found
}

// roleDifferences checks that each account has one cacher, which is the one in the database, and
// that its other agents are standbys.
func (w *world) roleDifferences(ctx context.Context) (found []string) {
	holders := map[string]string{}
	err := w.forEachRow(ctx, `SELECT name, holder FROM accounts WHERE name IS NOT NULL`, func(rows *sql.Rows) error {
		var name, holder string
		err := rows.Scan(&name, &holder)
		holders[name] = holder
		return err
	})
	if err != nil {
		return []string{err.Error()}
	}
	for _, a := range w.accounts {
		for _, agent := range w.agentsOf(a) {
			want := "standby"
			if holders[a.name] == agent.id {
				want = "reporting"
			}
			if got := agent.role(ctx, a.name); got != want {
				found = append(found, fmt.Sprintf("agent %s has role %q in %s, want %q because the holder is %q", agent.id, got, a.name, want, holders[a.name]))
			}
		}
		if !slices.ContainsFunc(w.agentsOf(a), func(g *agent) bool { return g.id == holders[a.name] }) {
			found = append(found, fmt.Sprintf("%s is held by %q, which is not one of its agents", a.name, holders[a.name]))
		}
	}
	return found
}

// role returns the role that an agent reports, and its error. Worlds select kinds whose definitions
// come and go, so that a kind that the cluster does not serve is no error.
func (a *agent) role(ctx context.Context, account string) string {
	var health struct {
		Error    string
		Accounts []struct{ Name, State, Error string }
	}
	if err := getJSON(ctx, a.health, &health); err != nil {
		return err.Error()
	}
	for _, entry := range health.Accounts {
		if strings.HasPrefix(entry.Error, "the cluster does not serve the kind ") {
			entry.Error = ""
		}
		if entry.Name == account && health.Error == "" {
			return strings.TrimSpace(entry.State + " " + entry.Error)
		}
	}
	return health.Error
}

func getJSON(ctx context.Context, url string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}
