package clouddriver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

// infrastructureWorld has an application "shop" in two accounts, what belongs to others, and what
// is hidden.
func infrastructureWorld(t testing.TB) *readtest.Fixture {
	t.Helper()
	w := readtest.New(t)
	kinds := []any{"pods", "replicasets", "deployments", "statefulsets", "services", "ingresses", "networkpolicies", "configmaps", crontab}
	w.Account("prod", kinds...)
	w.Register(vedette.Account{Name: "dev", Properties: vedette.Properties{CacheAllRelationships: true, OmitKinds: []string{"replicaSet"}}}, kinds...)
	w.Register(vedette.Account{Name: "managed", Properties: vedette.Properties{OnlySpinnakerManaged: true}}, kinds...)
	w.Put("prod", `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"shop-web-v003","namespace":"shop","uid":"rs-1","creationTimestamp":"2026-11-20T12:00:00Z"},
			"spec":{"replicas":1,"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"shop-web-v003-abcde","namespace":"shop","uid":"pod-1","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"shop-web-v003","uid":"rs-1","controller":true}]},
			"status":{"phase":"Running","containerStatuses":[{"name":"web","ready":true}]}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"Zeta","namespace":"shop","labels":{"tier":"front"},"annotations":{"moniker.spinnaker.io/application":"shop","moniker.spinnaker.io/cluster":"service zeta"}},"spec":{"selector":{"app":"web"}}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"shop-api","namespace":"shop"},"spec":{"selector":{}}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"shop-hidden","namespace":"shop","annotations":{"caching.spinnaker.io/ignore":"true"}},"spec":{"selector":{"app":"web"}}}`,
		`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"shop-web","namespace":"shop"},"spec":{"defaultBackend":{"service":{"name":"Zeta"}}}}`,
		`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"shop-deny","namespace":"shop","labels":{"team":"net"},"creationTimestamp":"2026-11-20T12:00:00Z"},
			"spec":{"ingress":[{"ports":[{"protocol":"TCP","port":8080},{"protocol":"UDP","port":"dns"}]}],"egress":[{}]}}`,
		`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"other","namespace":"aside"}}`,
		`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"hidden","namespace":"aside","annotations":{"caching.spinnaker.io/ignore":"true"}}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shop-settings","namespace":"shop"}}`)
	w.Put("dev", `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"shop-web-v001","namespace":"dev","annotations":{"moniker.spinnaker.io/application":"shop","moniker.spinnaker.io/cluster":"replicaSet shop-web"}}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shop-settings","namespace":"dev"}}`,
		`{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"shop-nightly","namespace":"dev"}}`)
	w.Put("managed", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"shop-manual","namespace":"shop"}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"shop-deployed","namespace":"shop","annotations":{"moniker.spinnaker.io/application":"shop"}}}`)
	return w
}

// TestInfrastructureAnswersAsRecorded compares answers with files.
func TestInfrastructureAnswersAsRecorded(t *testing.T) {
	server := serve(t, clouddriver.Config{Store: infrastructureWorld(t).Store})
	for name, path := range map[string]string{
		"load-balancers":           "/applications/shop/loadBalancers",
		"load-balancers-of-no-one": "/applications/Shop/loadBalancers",
		"load-balancer":            "/kubernetes/loadBalancers/prod/shop/service%20Zeta",
		"load-balancer-name":       "/kubernetes/loadBalancers/service%20Zeta",
		"raw-resources":            "/applications/shop/rawResources",
		"security-groups":          "/securityGroups",
		"security-group":           "/securityGroups/prod/kubernetes/shop/networkPolicy%20shop-deny",
		"search":                   "/search?q=shop&type=applications,clusters,serverGroups,instances,loadBalancers,securityGroups,configMap&pageSize=500",
		"search-by-cluster":        "/search?q=replica*shop-w&type=applications,clusters,serverGroups",
		"search-second-page":       "/search?q=shop&type=loadBalancers&pageSize=3&page=2&platform=kubernetes",
	} {
		t.Run(name, func(t *testing.T) {
			response, body := get(t, server+path)
			if response.StatusCode != http.StatusOK {
				t.Fatalf("got %d %s, want 200", response.StatusCode, body)
			}
			golden.Compare(t, "testdata/infrastructure/"+name+".json", indent(t, body))
		})
	}
}

func TestInfrastructureFollowsPathAndRegion(t *testing.T) {
	server := serve(t, clouddriver.Config{Store: infrastructureWorld(t).Store})
	const deny, other = `{"id":"networkPolicy shop-deny","name":"networkPolicy shop-deny","moniker":{}}`, `{"id":"networkPolicy other","name":"networkPolicy other","moniker":{}}`
	for _, tt := range []struct {
		name, path string
		status     int
		body       string // the whole of status 200, or a part of others
	}{
		{"policies of an account", "/securityGroups/prod", 200, `{"kubernetes":{"aside":[` + other + `],"shop":[` + deny + `]}}`},
		{"policies of a namespace", "/securityGroups/prod?region=shop", 200, `{"kubernetes":[` + deny + `]}`},
		{"policies of a namespace that has none", "/securityGroups/prod?region=nope", 200, `{}`},
		{"policies of an empty namespace", "/securityGroups/prod?region=", 200, `{}`},
		{"policies of an account without any", "/securityGroups/dev", 200, `{}`},
		{"policies of an unknown account", "/securityGroups/nope", 200, `{}`},
		{"policies of a provider", "/securityGroups/prod/kubernetes", 200, `{"aside":[` + other + `],"shop":[` + deny + `]}`},
		{"policies of a provider and a namespace", "/securityGroups/prod/kubernetes?region=aside", 200, `[` + other + `]`},
		{"policies of a provider and a namespace that has none", "/securityGroups/dev/kubernetes?region=aside", 200, `[]`},
		{"policies of another provider", "/securityGroups/prod/aws", 200, `{}`},
		{"policies by name", "/securityGroups/prod/kubernetes/networkPolicy%20other", 200, `{"aside":[` + other + `]}`},
		{"policies by a name that has no kind", "/securityGroups/prod/kubernetes/other", 200, `{}`},
		{"policies by a hidden name", "/securityGroups/prod/kubernetes/networkPolicy%20hidden", 200, `{}`},
		{"a hidden policy", "/securityGroups/prod/kubernetes/aside/networkPolicy%20hidden", 404, "Security group 'networkPolicy hidden' does not exist"},
		{"a missing policy", "/securityGroups/prod/kubernetes/shop/networkPolicy%20other", 404, "Security group 'networkPolicy other' does not exist"},
		{"a policy without namespace", "/securityGroups/prod/kubernetes//networkPolicy%20other", 404, "does not exist"},
		{"a policy of another provider", "/securityGroups/prod/aws/shop/networkPolicy%20shop-deny", 404, "does not exist"},

		{"all load balancers", "/kubernetes/loadBalancers", 200, `[]`},
		{"load balancers of another provider", "/aws/loadBalancers", 400, `"message":"No cloud provider named aws found"`},
		{"a load balancer of another provider", "/aws/loadBalancers/prod/shop/service%20Zeta", 400, "CloudProviderNotFoundException"},
		{"a load balancer's name of another provider", "/aws/loadBalancers/service%20Zeta", 400, "CloudProviderNotFoundException"},
		{"a missing load balancer", "/kubernetes/loadBalancers/prod/shop/service%20nope", 200, `[]`},
		{"a load balancer without kind", "/kubernetes/loadBalancers/prod/shop/Zeta", 200, `[]`},
		{"an object that is no load balancer", "/kubernetes/loadBalancers/prod/shop/replicaSet%20shop-web-v003", 200, `[]`},
		{"a hidden load balancer", "/kubernetes/loadBalancers/prod/shop/service%20shop-hidden", 200, `[]`},
		{"a load balancer of an unknown account", "/kubernetes/loadBalancers/nope/shop/service%20Zeta", 200, `[]`},
		{"a name of no load balancer", "/kubernetes/loadBalancers/service%20nope", 404, "Load balancer 'service nope' does not exist"},

		{"raw resources of an unknown application", "/applications/nope/rawResources", 200, `[]`},
		{"a search without type", "/search?q=web", 400, "Required request parameter 'type'"},
		{"a search for nothing", "/search?q=nope&type=pod", 200, `[{"totalMatches":0,"pageNumber":1,"pageSize":10000,"platform":"aws","query":"nope","results":[]}]`},
		{"a search by kind", "/search?q=networkpolicy&type=securityGroups", 200, `[{"totalMatches":0,"pageNumber":1,"pageSize":10000,"platform":"aws","query":"networkpolicy","results":[]}]`},
		{"a long search", "/search?type=pod&q=" + strings.Repeat("x", 5000), 400, "no name has more than"},

		{"account definitions", "/credentials/type/kubernetes", 400, "edit kubernetes.accounts in the armory-agent.yml"},
		{"caching agents", "/cache/introspection", 200, `[{"id":"dev/KubernetesCoreCachingAgent[1/1]","provider":"kubernetes","details":{"connection":"connected"}},` +
			`{"id":"managed/KubernetesCoreCachingAgent[1/1]","provider":"kubernetes","details":{"connection":"connected"}},` +
			`{"id":"prod/KubernetesCoreCachingAgent[1/1]","provider":"kubernetes","details":{"connection":"connected"}}]`},
		{"networks", "/networks", 200, `{}`},
		{"an image", "/images/kubernetes/x", 404, `"message":"ImageProvider for provider kubernetes not found."`},
		{"static data", "/v1/data/static/nothing", 404, `"message":"No data available (id: nothing)"`},
		{"services of a broker without a provider", "/servicebroker/prod/services", 400, "cloudProvider"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response, body := get(t, server+tt.path)
			got := strings.TrimSpace(string(body))
			if response.StatusCode != tt.status || tt.status == http.StatusOK && got != tt.body || !strings.Contains(got, tt.body) {
				t.Errorf("got %d %s, want %d %s", response.StatusCode, got, tt.status, tt.body)
			}
		})
	}
}

// TestUnknownApplicationsAreHidden hides the application shop, which Front50 does not know. What
// belongs to no application stays.
func TestUnknownApplicationsAreHidden(t *testing.T) {
	server := serve(t, clouddriver.Config{Store: infrastructureWorld(t).Store, Applications: onlyZebra{}})
	for path, want := range map[string]string{
		"/applications/shop/loadBalancers":                          `[]`,
		"/securityGroups":                                           `{}`,
		"/search?q=shop-web&type=clusters,serverGroups&pageSize=9":  `"results":[]`,
		"/search?q=shop-web&type=instances&pageSize=9":              `"name":"pod shop-web-v003-abcde"`,
		"/kubernetes/loadBalancers/prod/shop/service%20Zeta":        `[]`,
		"/securityGroups/prod/kubernetes/networkPolicy%20shop-deny": `{}`,
	} {
		if response, body := get(t, server+path); response.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s: got %d %s, want 200 with %s", path, response.StatusCode, body, want)
		}
	}
}

// TestHugeSearchIsRejected sends 10 MB. A server in front of the handler accepts 1 MB of headers at most.
func TestHugeSearchIsRejected(t *testing.T) {
	handler := clouddriver.New(clouddriver.Config{Store: readtest.New(t).Store})
	for _, query := range []string{"type=pod&q=" + strings.Repeat("x", 10<<20), "q=web" + strings.Repeat("&type=pod,replicaSet,x", 500_000),
		"type=" + strings.Repeat("pod,", 2_500_000)} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/search?"+query, nil)
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, r)
		if body := recorder.Body.String(); recorder.Code != http.StatusBadRequest || len(body) > 1000 {
			t.Errorf("%.20s: got %d with %d bytes, want 400", query, recorder.Code, len(body))
		}
	}
}
