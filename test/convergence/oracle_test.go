package convergence

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette/test/oracle"
)

// listed returns a fresh list of every kind of every account, and the feeds that should exist.
func (w *world) listed(ctx context.Context) (oracle.State, map[oracle.FeedKey]bool, error) {
	objects, feeds := oracle.State{}, map[oracle.FeedKey]bool{}
	for _, a := range w.accounts {
		kinds, err := served(ctx, a.cluster)
		if err != nil {
			return nil, nil, err
		}
		for _, k := range kinds {
			for _, namespace := range a.feedsOf(k) {
				feeds[oracle.FeedKey{Account: a.name, Kind: k.groupKind(), Namespace: namespace}] = true
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

func (a *account) list(ctx context.Context, k kind, namespace string, into oracle.State) error {
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
		into[oracle.Row{Account: a.name, Kind: k.groupKind(), Namespace: m.Namespace, Name: m.Name}] = oracle.Version(m.UID, m.ResourceVersion)
	}
	return nil
}

// forEachRow passes each row of a query to scan.
func (w *world) forEachRow(ctx context.Context, query string, scan func(*sql.Rows) error) error {
	for _, db := range w.db.all() {
		if err := oracle.ForEachRow(ctx, db.sql, query, scan); err != nil {
			return err
		}
	}
	return nil
}

// differences describes the differences between store and clusters.
func (w *world) differences(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	want, feeds, err := w.listed(ctx)
	if err != nil {
		return []string{"the clusters cannot be listed: " + err.Error()}
	}
	got, rows := oracle.State{}, map[oracle.FeedKey]oracle.FeedRow{}
	for _, db := range w.db.all() {
		objects, feeds, err := oracle.Stored(ctx, db.sql)
		if err != nil {
			return []string{"the database cannot be read: " + err.Error()}
		}
		maps.Copy(got, objects)
		maps.Copy(rows, feeds)
	}
	found := slices.Concat(oracle.CompareObjects(want, got), oracle.CompareFeeds(feeds, rows, got), w.roleDifferences(ctx), w.staleAccounts(ctx))
	slices.Sort(found)
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

// getJSON reads an answer of a server. It waits for longer than a server does that asks a cluster for an object.
func getJSON(ctx context.Context, url string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
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
