package kube_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
)

// newFakeAPI serves documents by path, and 503 for other paths.
func newFakeAPI(t *testing.T, documents map[string]string) *kube.Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		doc, ok := documents[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if strings.Contains(doc, "APIGroupDiscoveryList") {
			w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList")
		}
		fmt.Fprint(w, doc)
	}))
	t.Cleanup(server.Close)
	c, err := kube.Connect(kube.Access{KubeconfigContents: kubetest.Kubeconfig(server.URL, nil)}, kube.Options{})
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

func kindsOf(cat kube.Catalogue) (kinds []string) {
	for _, r := range cat.Resources {
		kinds = append(kinds, fmt.Sprintf("%s@%s/%s", r.Kind, r.Version, r.Plural))
	}
	return kinds
}

func TestDiscoverLegacyServer(t *testing.T) {
	c := newFakeAPI(t, map[string]string{
		"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
		"/api/v1": `{"kind":"APIResourceList","resources":[{"name":"pods","singularName":"","namespaced":true,"kind":"Pod","verbs":["list","watch","get"],"shortNames":["po"]},{"name":"pods/log","namespaced":true,"kind":"Pod","verbs":["get"]},{"name":"bindings","kind":"Binding","verbs":["create"]}]}`,
		"/apis": `{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"version":"v1beta1"},{"version":"v1"}],"preferredVersion":{"version":"v1"}},
			{"name":"down.example.org","versions":[{"version":"v1"}],"preferredVersion":{"version":"v1"}},
			{"name":"junk.example.org","versions":[{"version":"v1"}],"preferredVersion":{"version":"v1"}}]}`,
		"/apis/apps/v1":             `{"kind":"APIResourceList","resources":[{"name":"deployments","kind":"Deployment","namespaced":true,"verbs":["list","watch"]}]}`,
		"/apis/apps/v1beta1":        `{"kind":"APIResourceList","resources":[{"name":"deployments","kind":"Deployment","namespaced":true,"verbs":["list","watch"]},{"name":"old","kind":"Old","verbs":["list","watch"]}]}`,
		"/apis/junk.example.org/v1": `<html>`,
	})
	cat, err := c.Discover(t.Context())
	must(t, err)
	if got, want := kindsOf(cat), []string{"Pod@v1/pods", "Deployment.apps@v1/deployments", "Old.apps@v1beta1/old"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if want := []string{"down.example.org", "junk.example.org"}; !slices.Equal(cat.UnknownGroups, want) {
		t.Errorf("unknown groups: got %v, want %v", cat.UnknownGroups, want)
	}
}

func TestDiscoverReportsMalformedGroupAsUnknown(t *testing.T) {
	c := newFakeAPI(t, map[string]string{
		"/api": `{"kind":"APIVersions","versions":[]}`,
		"/apis": `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"bad"},"versions":"none"},
			{"metadata":{"name":"stale"},"versions":[{"version":"v1","freshness":"Stale"}]},
			{"metadata":{"name":"nil"},"versions":[{"version":"v1","resources":[{"resource":"x","responseKind":null,"verbs":["list","watch"]}]}]},
			{"metadata":{"name":"good"},"versions":[{"version":"v1","resources":[{"resource":"things","responseKind":{"kind":"Thing"},"scope":"Cluster","verbs":["list","watch"]}]}]}]}`,
	})
	cat, err := c.Discover(t.Context())
	must(t, err)
	if got, want := kindsOf(cat), []string{"Thing.good@v1/things"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if want := []string{"bad", "stale"}; !slices.Equal(cat.UnknownGroups, want) {
		t.Errorf("unknown groups: got %v, want %v", cat.UnknownGroups, want)
	}
}

func TestInvalidDiscoveryDocumentsFail(t *testing.T) {
	for name, documents := range map[string]map[string]string{
		"no documents":            {},
		"an HTML page":            {"/api": "<html>", "/apis": "<html>"},
		"a truncated document":    {"/api": `{"kind":"APIVersions"}`, "/apis": `{"kind":"APIGroupDiscoveryList","items":[{"meta`},
		"a document without kind": {"/api": `{}`, "/apis": `{}`},
	} {
		if cat, err := newFakeAPI(t, documents).Discover(t.Context()); err == nil {
			t.Errorf("%s: got %v, want an error", name, cat)
		}
	}
}
