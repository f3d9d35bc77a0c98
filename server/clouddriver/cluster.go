package clouddriver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/store"
)

// coordinates name one manifest of a cluster.
type coordinates struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func coordinatesOf(row store.Row) coordinates {
	return coordinates{kindName(row.Kind), row.Namespace, row.Name}
}

// listCluster mirrors ManifestController.getClusterManifestCoordinates.
func (a *api) listCluster(w http.ResponseWriter, r *http.Request, p parts) error {
	at, err := a.clusterPlace(r, p)
	if err != nil {
		return err
	}
	rows, err := a.cluster(r, at, p, false)
	var failed *readFailure
	if errors.As(err, &failed) {
		return &readFailure{"Failed to read " + describeCluster(p) + ": " + failed.message}
	}
	if vedette.KindOf(err) == vedette.NotFound { // the account
		rows, err = nil, nil
	}
	if err != nil {
		return err
	}
	list := []coordinates{}
	for _, row := range rows {
		list = append(list, coordinatesOf(row))
	}
	return writeJSON(w, r, list)
}

// pick chooses among the manifests of a cluster, of which there is at least one.
type pick struct {
	bySize bool
	at     func(n int) int // of n manifests, from the oldest or smallest on
}

func firstOne(int) int  { return 0 }
func lastOne(n int) int { return n - 1 }

var picks = map[string]pick{
	"oldest": {false, firstOne}, "newest": {false, lastOne}, "second_newest": {false, func(n int) int { return n - 2 }},
	"smallest": {true, firstOne}, "largest": {true, lastOne},
}

// pickManifest mirrors ManifestController.getDynamicManifestFromCluster. As
// there, what can't be read is answered with nothing, which Orca takes for a
// target that can't be found.
func (a *api) pickManifest(w http.ResponseWriter, r *http.Request, p parts) error {
	pick, ok := picks[p["criteria"]]
	if !ok {
		return vedette.Errorf(vedette.Invalid, "Unknown criteria: %.100s; there are oldest, newest, second_newest, largest and smallest", p["criteria"])
	}
	at, err := a.clusterPlace(r, p)
	if err != nil {
		return err
	}
	rows, err := a.cluster(r, at, p, pick.bySize)
	var failed *readFailure
	switch {
	case errors.As(err, &failed):
		a.Log.Warn("a target of a stage could not be read", "caller", at.caller, "account", at.account, "cluster", p["cluster"], "error", failed.message)
		w.WriteHeader(http.StatusOK)
		return nil
	case err != nil && vedette.KindOf(err) != vedette.NotFound:
		return err
	}
	n := pick.at(len(rows))
	if n < 0 || n >= len(rows) {
		return vedette.Errorf(vedette.NotFound, "No manifests matching %s found", describeCluster(p))
	}
	return writeJSON(w, r, coordinatesOf(rows[n]))
}

// describeCluster words a request as Clouddriver does.
func describeCluster(p parts) string {
	text := fmt.Sprintf("(account: %s, location: %s, kind: %s, app %s, cluster: %s", p["account"], p["location"], p["kind"], p["app"], p["cluster"])
	if p["criteria"] != "" {
		text += ", criteria: " + p["criteria"]
	}
	return text + ")"
}

func (a *api) clusterPlace(r *http.Request, p parts) (place, error) {
	at := placeOf(r, p)
	return at, a.mayRead(r, at, p["app"])
}

// mayRead asks for an account and an application that the path names.
func (a *api) mayRead(r *http.Request, at place, application string) error {
	if err := a.Authority.Account(r.Context(), at.caller, at.account, authorize.Read); err != nil {
		return err
	}
	return a.Authority.Application(r.Context(), at.caller, application, authorize.Read)
}

// cluster returns a cluster's manifests of a kind, sorted by age or by size. As
// in Clouddriver the annotations alone say what belongs to it, not names.
func (a *api) cluster(r *http.Request, at place, p parts, bySize bool) ([]store.Row, error) {
	rows, err := a.list(r.Context(), at, p["kind"], selection{application: p["app"], bodies: bySize})
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(row store.Row) bool {
		return row.Annotations["moniker.spinnaker.io/cluster"] != p["cluster"] || row.Annotations["moniker.spinnaker.io/application"] != p["app"]
	})
	slices.SortStableFunc(rows, func(x, y store.Row) int {
		return cmp.Or(cmp.Compare(x.Created, y.Created), cmp.Compare(x.Name, y.Name))
	})
	if bySize {
		slices.SortStableFunc(rows, func(x, y store.Row) int { return cmp.Compare(replicas(x), replicas(y)) })
	}
	return rows, nil
}

func replicas(row store.Row) float64 {
	var m struct{ Spec struct{ Replicas float64 } }
	_ = json.Unmarshal(row.Body, &m) // what has none, or none that is a number, is the smallest
	return m.Spec.Replicas
}
