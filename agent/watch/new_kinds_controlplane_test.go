//go:build linux

package watch_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/test/controlplane"
)

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	apiServices = "/apis/apiregistration.k8s.io/v1/apiservices"
)

var widgetFeed = vedette.Feed{Kind: vedette.Kind{Group: "example.org", Name: "Widget"}}

// newInterceptor returns a proxy in front of a control plane. intercept sees each request first, and
// may wait.
func newInterceptor(t *testing.T, p *controlplane.Plane, intercept func(*http.Request)) *httptest.Server {
	to, err := url.Parse(p.URL)
	must(t, err)
	forward := &httputil.ReverseProxy{FlushInterval: -1, Transport: p.Client().Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Del("Authorization") // the control plane's client has a certificate
		}}
	return kubetest.NewServer(t, func(w http.ResponseWriter, r *http.Request) {
		intercept(r)
		forward.ServeHTTP(w, r)
	})
}

// createWidget creates an object of a new kind, as soon as the API server serves the kind.
func createWidget(t *testing.T, p *controlplane.Plane, list, name string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		err := p.Create(t.Context(), list, object{"apiVersion": "example.org/v1", "kind": "Widget", "metadata": object{"name": name}})
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatal(err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestKindCreatedBeforeTheFirstListIsWatched creates a kind after discovery, and before the API server
// answers the first lists of definitions and APIServices. No watch reports such a kind: it is in the
// first list already.
func TestKindCreatedBeforeTheFirstListIsWatched(t *testing.T) {
	p := newControlPlane(t)
	for name, kinds := range map[string][]string{"the kind alone": {"widget"}, "with a feed of definitions": {"widget", "crd"}, "all kinds": {"all"}} {
		t.Run(name, func(t *testing.T) {
			held, release := make(chan struct{}, 100), make(chan struct{})
			proxy := newInterceptor(t, p, func(r *http.Request) {
				if (r.URL.Path == definitions || r.URL.Path == apiServices) && !r.URL.Query().Has("watch") {
					held <- struct{}{}
					select {
					case <-release:
					case <-r.Context().Done():
					}
				}
			})
			r := newRecorder()
			cfg := fastConfig
			cfg.RediscoverInterval = time.Hour
			start(t, kubetest.Connect(t, proxy, kube.Options{}), watch.Selection{Kinds: kinds}, r, cfg, nil)
			r.await(t, "a declaration", func() bool { return len(r.events) > 0 })
			<-held
			<-held
			must(t, p.Create(t.Context(), definitions, crd("example.org", "Widget", "widgets", "v1")))
			createWidget(t, p, "/apis/example.org/v1/namespaces/default/widgets", "w")
			close(release)
			r.await(t, "the object of the new kind", func() bool { return r.has(widgetFeed, "default/w") })
			r.check(t)
			must(t, p.Delete(t.Context(), definitions+"/widgets.example.org"))
			r.await(t, "the feed to disappear", func() bool { return r.feeds[widgetFeed] == nil })
		})
	}
}

// TestDefinitionIsReplaced deletes a definition and creates one of the same kind with another scope and
// plural, while the agent is watching and while it lists the first definitions.
func TestDefinitionIsReplaced(t *testing.T) {
	p := newControlPlane(t)
	r := newRecorder()
	cfg := fastConfig
	cfg.RediscoverInterval = time.Hour
	start(t, connect(t, p.Kubeconfig()), watch.Selection{Kinds: []string{"widget"}, Namespaces: []string{"default"}}, r, cfg, nil)
	must(t, p.Create(t.Context(), definitions, crd("example.org", "Widget", "widgets", "v1")))
	createWidget(t, p, "/apis/example.org/v1/namespaces/default/widgets", "namespaced")
	inNamespace := vedette.Feed{Kind: widgetFeed.Kind, Namespace: "default"}
	r.await(t, "the namespaced object", func() bool { return r.has(inNamespace, "default/namespaced") })

	must(t, p.Delete(t.Context(), definitions+"/widgets.example.org"))
	replacement := crd("example.org", "Widget", "wodgets", "v1")
	replacement["spec"].(object)["scope"] = "Cluster"
	must(t, p.Create(t.Context(), definitions, replacement))
	createWidget(t, p, "/apis/example.org/v1/wodgets", "cluster-wide")
	r.await(t, "the object of the other scope", func() bool { return r.has(widgetFeed, "/cluster-wide") && r.feeds[inNamespace] == nil })
	r.check(t)
	for _, line := range r.events {
		if strings.HasPrefix(line, "declare") && strings.Contains(line, "Widget.example.org@") && strings.Contains(line, "Widget.example.org/default@") {
			t.Errorf("got %q: the server rejects a feed of all namespaces beside one of the same kind", line)
		}
	}
}
