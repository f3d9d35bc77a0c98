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
	members, err := a.cluster(r, at, p, false)
	var failed *readFailure
	if errors.As(err, &failed) {
		return &readFailure{"Failed to read " + describeCluster(p) + ": " + failed.message}
	}
	if vedette.KindOf(err) == vedette.NotFound { // the account
		members, err = nil, nil
	}
	if err != nil {
		return err
	}
	list := []coordinates{}
	for _, m := range members {
		list = append(list, m.coordinates)
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
	members, err := a.cluster(r, at, p, pick.bySize)
	var failed *readFailure
	switch {
	case errors.As(err, &failed):
		a.Log.Warn("a target of a stage could not be read", "caller", at.caller, "account", at.account, "cluster", p["cluster"], "error", failed.message)
		w.WriteHeader(http.StatusOK)
		return nil
	case err != nil && vedette.KindOf(err) != vedette.NotFound:
		return err
	}
	n := pick.at(len(members))
	if n < 0 || n >= len(members) {
		return vedette.Errorf(vedette.NotFound, "No manifests matching %s found", describeCluster(p))
	}
	return writeJSON(w, r, members[n].coordinates)
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
	if err := a.Authority.CheckAccount(r.Context(), at.caller, at.account, authorize.Read); err != nil {
		return err
	}
	return a.Authority.CheckApplication(r.Context(), at.caller, application, authorize.Read)
}

// member is a manifest of a cluster, with what members are sorted by.
type member struct {
	coordinates
	created  int64
	replicas float64
}

// cluster returns a cluster's manifests of a kind, sorted by age or by size. As
// in Clouddriver the annotations alone say what belongs to it, not names.
func (a *api) cluster(r *http.Request, at place, p parts, bySize bool) ([]member, error) {
	members := []member{}
	for row, err := range a.list(r.Context(), at, p["kind"], selection{application: p["app"], bodies: bySize}) {
		if err != nil {
			return nil, err
		}
		if row.Annotations["moniker.spinnaker.io/cluster"] != p["cluster"] || row.Annotations["moniker.spinnaker.io/application"] != p["app"] {
			continue
		}
		m := member{coordinates: coordinatesOf(row), created: row.Created}
		if bySize {
			m.replicas = replicas(row)
		}
		members = append(members, m)
	}
	slices.SortStableFunc(members, func(x, y member) int {
		return cmp.Or(cmp.Compare(x.created, y.created), cmp.Compare(x.Name, y.Name))
	})
	slices.SortStableFunc(members, func(x, y member) int { return cmp.Compare(x.replicas, y.replicas) })
	return members, nil
}

func replicas(row store.Row) float64 {
	var m struct{ Spec struct{ Replicas float64 } }
	_ = json.Unmarshal(row.Body, &m) // what has none, or none that is a number, is the smallest
	return m.Spec.Replicas
}
