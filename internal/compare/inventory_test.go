package compare_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette/internal/compare"
)

// shop is what a server with an account prod and an account of its own shows.
func shop(own string) map[string]string {
	return map[string]string{
		"/credentials":  `[{"name":"prod","cloudProvider":"kubernetes"},{"name":"aws","type":"aws"},{"name":"` + own + `","type":"kubernetes"}]`,
		"/applications": `[{"name":"shop","clusterNames":{"prod":["deployment web"],"` + own + `":["x"]}},{"name":"only-` + own + `","clusterNames":{"` + own + `":["y"]}}]`,
		"/applications/shop/serverGroups": `[{"account":"prod","region":"shop","name":"replicaSet web-v000","cluster":"deployment web","instances":[{"name":"pod web-v000-a"}]},
			{"account":"prod","region":"shop","name":"job load","cluster":"job load"},{"account":"` + own + `","region":"shop","name":"replicaSet x"}]`,
		"/applications/shop/serverGroupManagers": `[{"account":"prod","region":"shop","name":"deployment web","moniker":{"cluster":"deployment web"}}]`,
		"/applications/shop/loadBalancers":       `[{"account":"prod","region":"shop","name":"service web"}]`,
		"/applications/shop/rawResources":        `[{"account":"prod","region":"shop","name":"secret web"},{"account":"prod","region":"","name":"node a"}]`,
		"/securityGroups":                        `{"prod":{"kubernetes":{"shop":[{"name":"networkPolicy web"}]}},"` + own + `":{"kubernetes":{"n":[{"name":"networkPolicy z"}]}}}`,
	}
}

// fakeClouddriver answers with bodies by path, [] if it has none, and records what it was asked.
type fakeClouddriver struct {
	mu     sync.Mutex
	bodies map[string]string
	asked  map[string]bool
}

func (f *fakeClouddriver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked == nil {
		f.asked = map[string]bool{}
	}
	f.asked[r.Method+" "+r.RequestURI] = true
	if body, known := f.bodies[r.URL.Path]; known {
		fmt.Fprint(w, body)
		return
	}
	fmt.Fprint(w, "[]")
}

func TestDiscoveredPathsCoverCommonAccounts(t *testing.T) {
	clouddriver, vedette := &fakeClouddriver{bodies: shop("before")}, &fakeClouddriver{bodies: shop("after")}
	a, b := newServer(t, clouddriver.ServeHTTP), newServer(t, vedette.ServeHTTP)
	inv, err := compare.Discover(t.Context(), a, b, compare.Scope{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(inv.Accounts, inv.Others) != "[prod] [after aws before]" {
		t.Errorf("got accounts %v and others %v, want prod, and aws, after and before", inv.Accounts, inv.Others)
	}
	paths, omitted := inv.Paths(0)
	for _, want := range []string{
		"/applications/shop/clusters/prod/deployment%20web/kubernetes/serverGroups/replicaSet%20web-v000?region=shop",
		"/applications/shop/clusters/prod/deployment%20web/kubernetes/shop/serverGroups/target/oldest_asg_dynamic",
		"/applications/shop/jobs/prod/shop/job%20load", "/instances/prod/shop/pod%20web-v000-a", "/kubernetes/loadBalancers/prod/shop/service%20web",
		"/manifests/prod/_/node%20a", "/manifests/prod/shop/deployment/cluster/shop/deployment%20web/dynamic/newest",
		"/manifests/prod/shop/replicaSet%20web-v000", "/search?pageSize=500&q=shop&type=serverGroups", "/securityGroups/prod/kubernetes/shop/networkPolicy%20web",
		"/serverGroups/prod/shop/deployment%20web",
	} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is not asked", want)
		}
	}
	for _, path := range paths {
		for _, unwanted := range []string{"secret", "only-", "/before", "/after", "replicaSet%20x"} {
			if strings.Contains(path, unwanted) {
				t.Errorf("%s is asked", path)
			}
		}
	}
	sampled, omitted1 := inv.Paths(1)
	if omitted != 0 || len(sampled)+omitted1 != len(paths) || len(sampled) >= len(paths) {
		t.Errorf("got %d of %d paths and %d left out, want fewer paths that add up", len(sampled), len(paths), omitted1)
	}
	// What differs is about accounts that are not compared.
	report, err := compare.Run(t.Context(), a, b, paths, compare.Options{HiddenAccounts: inv.Others})
	if err != nil || !report.OK() {
		t.Errorf("got %+v, %v, want no difference", report, err)
	}
	for _, asked := range slices.Concat(slices.Collect(maps.Keys(clouddriver.asked)), slices.Collect(maps.Keys(vedette.asked))) {
		if !strings.HasPrefix(asked, "GET ") {
			t.Errorf("got request %s, want GET only", asked)
		}
	}
}

func TestScopeLimitsDiscovery(t *testing.T) {
	bodies := shop("other")
	a := newServer(t, (&fakeClouddriver{bodies: bodies}).ServeHTTP)
	inv, err := compare.Discover(t.Context(), a, a, compare.Scope{Accounts: []string{"oth*"}, Applications: []string{"only-*"}}, 1)
	if err != nil || fmt.Sprint(inv.Accounts) != "[other]" {
		t.Fatalf("got %+v, %v, want account other", inv, err)
	}
	paths, _ := inv.Paths(0)
	if !slices.Contains(paths, "/applications/only-other/clusters/other/y") || slices.Contains(paths, "/applications/shop") {
		t.Errorf("got %v, want application only-other and not shop", paths)
	}
}

func TestFailedDiscoveryIsExplained(t *testing.T) {
	good := newServer(t, (&fakeClouddriver{bodies: shop("x")}).ServeHTTP)
	for name, tt := range map[string]struct {
		handle http.HandlerFunc
		want   string
	}{
		"not a Clouddriver": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "does Clouddriver's API listen there?"},
		"an error":          {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "{}", http.StatusForbidden) }, "status 403"},
		"no common account": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[{"name":"a","type":"kubernetes"}]`) },
			"no Kubernetes account to compare: clouddriver has aws, prod, x; vedette has a"},
		"a dead connection": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "ask clouddriver: GET /credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compare.Discover(t.Context(), good, newServer(t, tt.handle), compare.Scope{}, 1)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}
