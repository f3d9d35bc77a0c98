package clouddriver_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

// TestBlankMonikersAreShownAsEmpty checks that texts of monikers that annotations set to the empty text are shown as "" in all answers, and
// that invalid ones are left out, as in Clouddriver.
func TestBlankMonikersAreShownAsEmpty(t *testing.T) {
	w := readtest.New(t)
	w.Register(vedette.Account{Name: "prod", Properties: vedette.Properties{CacheAllRelationships: true}}, append(viewKinds(), "configmaps")...)
	object := func(apiVersion, kind, name, annotations, more string) string {
		return `{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","metadata":{"name":"` + name + `","namespace":"shop","uid":"uid-of-` + kind + name +
			`","creationTimestamp":"2026-11-20T12:00:00Z","annotations":{` + annotations + `}` + more + `}`
	}
	const stack = `"moniker.spinnaker.io/stack":"","moniker.spinnaker.io/detail":"\"\"","moniker.spinnaker.io/sequence":""`
	const app = `"moniker.spinnaker.io/application":"shop","moniker.spinnaker.io/cluster":"CLUSTER",` + stack
	in := func(cluster string) string { return strings.ReplaceAll(app, "CLUSTER", cluster) }
	const blank = `"moniker.spinnaker.io/application":"","moniker.spinnaker.io/cluster":"\"\"","moniker.spinnaker.io/stack":"\"a\\\""`
	w.Put("prod",
		object("apps/v1", "Deployment", "web", in("deployment web"), "}"),
		object("apps/v1", "ReplicaSet", "web-v003", in("deployment web"), `,"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"uid-of-Deploymentweb","controller":true}]}`),
		object("v1", "Pod", "web-v003-x", in("deployment web"), `,"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-v003","uid":"uid-of-ReplicaSetweb-v003","controller":true}]}`),
		object("v1", "Service", "web", in("service web"), "}"), object("networking.k8s.io/v1", "NetworkPolicy", "web", in("networkPolicy web"), "}"),
		object("v1", "ConfigMap", "web", in("configMap web"), "}"),
		object("apps/v1", "ReplicaSet", "none", blank, "}"), object("networking.k8s.io/v1", "NetworkPolicy", "none", blank, "}"), object("v1", "Pod", "none", blank, "}"))
	server := serve(t, clouddriver.Config{Store: w.Store})
	shop := func(cluster string) string {
		return `{"app":"shop","cluster":"` + cluster + `","stack":"","detail":""}`
	}
	const none, cluster = `{"app":"","cluster":""}`, `{"app":"shop","cluster":"deployment web"}`
	for path, want := range map[string][]string{
		"/applications/shop/serverGroups":                                           {shop("deployment web")},
		"/applications/shop/serverGroups?expand=true":                               {shop("deployment web")},
		"/applications/shop/serverGroups/prod/shop/replicaSet%20web-v003":           {shop("deployment web")},
		"/applications/shop/serverGroupManagers":                                    {shop("deployment web")},
		"/applications/shop/loadBalancers":                                          {shop("service web")},
		"/applications/shop/clusters/prod/deployment%20web/kubernetes":              {shop("deployment web"), cluster},
		"/applications/shop/clusters/prod/deployment%20web/kubernetes/serverGroups": {shop("deployment web")},
		"/securityGroups/prod/kubernetes/shop/networkPolicy%20web":                  {shop("networkPolicy web"), "{}"},
		"/securityGroups/prod/kubernetes/shop/networkPolicy%20none":                 {none, "{}"}, // the summary has no moniker
		"/instances/prod/shop/pod%20web-v003-x":                                     {shop("deployment web")},
		"/instances/prod/shop/pod%20none":                                           {none},
		"/serverGroups/prod/shop/replicaSet%20none":                                 {none},
		"/manifests/prod/shop/replicaSet%20web-v003":                                {shop("deployment web")},
		"/manifests/prod/shop/configMap%20web":                                      {shop("configMap web")},
		"/manifests/prod/shop/replicaSet%20none":                                    {none},
		"/applications/shop/rawResources":                                           {shop("configMap web"), shop("deployment web"), shop("networkPolicy web"), shop("service web")},
	} {
		response, body := get(t, server+path)
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d %s, want %d", path, response.StatusCode, body, http.StatusOK)
			continue
		}
		if got := slices.Compact(slices.Sorted(slices.Values(monikersIn(string(body))))); !slices.Equal(got, want) {
			t.Errorf("%s: got monikers %q, want %q", path, got, want)
		}
	}
	if _, body := get(t, server+"/securityGroups/prod/kubernetes/shop/networkPolicy%20none"); !strings.Contains(string(body), `"application":""`) {
		t.Errorf("got %s, want an empty application", body)
	}
}

// monikersIn returns the monikers of an answer.
func monikersIn(body string) (monikers []string) {
	for _, part := range strings.Split(body, `"moniker":`)[1:] {
		moniker, _, _ := strings.Cut(part, "}")
		monikers = append(monikers, moniker+"}")
	}
	return monikers
}
