package clouddriver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// coordinates identify one manifest of a cluster.
type coordinates struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func coordinatesOf(row store.Row) coordinates {
	return coordinates{kindName(row.Kind), row.Namespace, row.Name}
}

// listCluster mirrors ManifestController.getClusterManifestCoordinates. Like Clouddriver it checks
// no permission, because the answer has nothing but names, and it answers nothing if the kind is
// unknown. Clouddriver answers nothing to other errors too, which Orca takes for an empty cluster;
// here it retries.
func (a *api) listCluster(w http.ResponseWriter, r *http.Request, p pathParams) error {
	members, err := a.listClusterMembers(r, newRequestScope(r, p), p, false)
	var readErr *readError
	switch {
	case errors.As(err, &readErr) && readErr.unknownKind:
		w.WriteHeader(http.StatusOK)
		return nil
	case errors.As(err, &readErr):
		return &readError{message: "Failed to read " + describeCluster(p) + ": " + readErr.message}
	}
	if vedette.KindOf(err) == vedette.NotFound { // the account does not exist
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

// criterion selects one manifest of a cluster with at least one.
type criterion struct {
	bySize bool
	index  func(n int) int // index in n manifests, sorted from the oldest or smallest
}

func firstIndex(int) int  { return 0 }
func lastIndex(n int) int { return n - 1 }

var criteria = map[string]criterion{
	"oldest": {false, firstIndex}, "newest": {false, lastIndex}, "second_newest": {false, func(n int) int { return n - 2 }},
	"smallest": {true, firstIndex}, "largest": {true, lastIndex},
}

// getDynamicManifest mirrors ManifestController.getDynamicManifestFromCluster. As in
// Clouddriver, no permission is checked, and the response is empty if the manifests cannot be
// read; Orca then reports that the target was not found. It is empty for unknown criteria too.
func (a *api) getDynamicManifest(w http.ResponseWriter, r *http.Request, p pathParams) error {
	selected, ok := criteria[p["criteria"]]
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		return nil
	}
	scope := newRequestScope(r, p)
	members, err := a.listClusterMembers(r, scope, p, selected.bySize)
	var readErr *readError
	switch {
	case errors.As(err, &readErr):
		a.Log.WarnContext(r.Context(), "cannot read the target of a stage", "caller", scope.caller, "account", scope.account, "cluster",
			p["cluster"], "error", readErr.message)
		w.WriteHeader(http.StatusOK)
		return nil
	case err != nil && vedette.KindOf(err) != vedette.NotFound:
		return err
	}
	n := selected.index(len(members))
	if n < 0 || n >= len(members) {
		return vedette.Errorf(vedette.NotFound, "No manifests matching %s found", describeCluster(p))
	}
	return writeJSON(w, r, members[n].coordinates)
}

// describeCluster describes a request in Clouddriver's words.
func describeCluster(p pathParams) string {
	text := fmt.Sprintf("(account: %s, location: %s, kind: %s, app %s, cluster: %s", p["account"], p["location"], p["kind"], p["app"],
		p["cluster"])
	if p["criteria"] != "" {
		text += ", criteria: " + p["criteria"]
	}
	return text + ")"
}

// clusterMember is a manifest of a cluster, with the values by which members are sorted.
type clusterMember struct {
	coordinates
	created  int64
	replicas float64
}

// listClusterMembers returns the manifests of one kind in a cluster, sorted by age or size. As
// in Clouddriver, only annotations decide what belongs to a cluster, not names.
func (a *api) listClusterMembers(r *http.Request, scope requestScope, p pathParams, bySize bool) ([]clusterMember, error) {
	members := []clusterMember{}
	for row, err := range a.listObjects(r.Context(), scope, p["kind"], listOptions{application: p["app"], bodies: bySize}) {
		if err != nil {
			return nil, err
		}
		if row.Annotations["moniker.spinnaker.io/cluster"] != p["cluster"] || row.Annotations["moniker.spinnaker.io/application"] != p["app"] {
			continue
		}
		m := clusterMember{coordinates: coordinatesOf(row), created: row.Created}
		if bySize {
			m.replicas = replicaCount(row)
		}
		members = append(members, m)
	}
	slices.SortStableFunc(members, func(x, y clusterMember) int {
		return cmp.Or(cmp.Compare(x.created, y.created), cmp.Compare(x.Name, y.Name))
	})
	slices.SortStableFunc(members, func(x, y clusterMember) int { return cmp.Compare(x.replicas, y.replicas) })
	return members, nil
}

func replicaCount(row store.Row) float64 {
	var m struct{ Spec struct{ Replicas float64 } }
	_ = json.Unmarshal(row.Body, &m) // a missing or invalid number counts as 0
	return m.Spec.Replicas
}
