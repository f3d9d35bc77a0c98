package manifests

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/read"
)

// coordinates identify one manifest of a cluster.
type coordinates struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func coordinatesOf(row read.Row) coordinates {
	return coordinates{manifest.KindName(row.Kind), row.Namespace, row.Name}
}

// listCluster mirrors ManifestController.getClusterManifestCoordinates. Unlike Clouddriver it checks READ,
// because objects that are not cached are listed in the cluster. It answers nothing if the kind is
// unknown. Clouddriver answers nothing to other errors too, which Orca takes for an empty cluster;
// here it retries.
func (a *api) listCluster(w http.ResponseWriter, r *http.Request, p web.Params) error {
	scope := web.NewScope(r, p)
	if err := a.Authorizer.CheckAccount(r.Context(), scope.Caller, scope.Account, authorize.Read); err != nil {
		return err
	}
	held := web.NewMemory(a.ReadLimiter, scope.LimitKey)
	defer held.Release()
	members, err := a.listClusterMembers(r, scope, held, p, false)
	var readErr *readError
	switch {
	case errors.As(err, &readErr) && readErr.unknownKind:
		w.WriteHeader(http.StatusOK)
		return nil
	case errors.As(err, &readErr):
		return readErr.withPrefix("Failed to read " + describeCluster(p) + ": ")
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
	return rest.WriteJSON(w, r, list)
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

// getDynamicManifest mirrors ManifestController.getDynamicManifestFromCluster. READ is checked as by
// listCluster. As in Clouddriver, the response is empty if the manifests cannot be read; Orca then
// reports that the target was not found. If nobody answers, it is an error instead, after which Orca
// tries again. It is empty for unknown criteria too.
func (a *api) getDynamicManifest(w http.ResponseWriter, r *http.Request, p web.Params) error {
	scope := web.NewScope(r, p)
	if err := a.Authorizer.CheckAccount(r.Context(), scope.Caller, scope.Account, authorize.Read); err != nil {
		return err
	}
	selected, ok := criteria[p["criteria"]]
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		return nil
	}
	held := web.NewMemory(a.ReadLimiter, scope.LimitKey)
	defer held.Release()
	members, err := a.listClusterMembers(r, scope, held, p, selected.bySize)
	var readErr *readError
	switch {
	case errors.As(err, &readErr) && readErr.unavailable:
		return readErr.withPrefix("Failed to read " + describeCluster(p) + ": ")
	case errors.As(err, &readErr):
		a.Log.WarnContext(r.Context(), "cannot read the target of a stage", "caller", scope.Caller, "account", scope.Account, "cluster",
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
	return rest.WriteJSON(w, r, members[n].coordinates)
}

// describeCluster describes a request in Clouddriver's words.
func describeCluster(p web.Params) string {
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

// memberBytes is what a member takes besides its texts, in lists that grow by doubling, and as JSON.
const memberBytes = 512

// listClusterMembers returns the manifests of one kind in a cluster, sorted by age or size. As
// in Clouddriver, only annotations decide what belongs to a cluster, not names. Their memory is held.
func (a *api) listClusterMembers(r *http.Request, scope web.Scope, held *web.Memory, p web.Params, bySize bool) ([]clusterMember, error) {
	ctx, members := r.Context(), []clusterMember{}
	for row, err := range a.listObjects(ctx, scope, held, p["kind"], listOptions{application: p["app"], bodies: bySize}) {
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
		if err := held.Grow(ctx, memberBytes+4*len(m.Kind+m.Namespace+m.Name)); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	slices.SortStableFunc(members, func(x, y clusterMember) int {
		return cmp.Or(cmp.Compare(x.created, y.created), cmp.Compare(x.Name, y.Name))
	})
	slices.SortStableFunc(members, func(x, y clusterMember) int { return cmp.Compare(x.replicas, y.replicas) })
	return members, nil
}

func replicaCount(row read.Row) float64 {
	var m struct {
		Spec struct {
			Replicas float64 `json:"replicas"`
		} `json:"spec"`
	}
	_ = exactjson.Unmarshal(row.Body, &m, web.ObjectLimits) // a missing or invalid number counts as 0
	return m.Spec.Replicas
}
