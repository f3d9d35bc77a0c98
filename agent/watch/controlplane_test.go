//go:build linux

package watch_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/test/controlplane"
)

type object = controlplane.Object

const configMaps = "/api/v1/namespaces/default/configmaps"

var (
	configMapFeed = vedette.Feed{Kind: vedette.Kind{Name: "ConfigMap"}}
	fastConfig    = watch.Config{MinDeniedBackoff: time.Second, MaxDeniedBackoff: 2 * time.Second, SettleDelay: 200 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler)}
)

// newControlPlane starts an API server. Tests with one run in parallel, because they wait most of the
// time.
func newControlPlane(t testing.TB) *controlplane.Plane {
	t.Helper()
	if test, ok := t.(*testing.T); ok {
		test.Parallel()
	}
	return controlplane.New(t, controlplane.Options{})
}

func configMap(name, value string) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name}, "data": object{"value": value}}
}

// listVersions lists a path and returns resourceVersions by name.
func listVersions(t testing.TB, p *controlplane.Plane, path string) map[string]string {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Namespace, Name, ResourceVersion string }
		}
	}
	must(t, p.Get(t.Context(), path, &list))
	versions := map[string]string{}
	for _, item := range list.Items {
		versions[item.Metadata.Namespace+"/"+item.Metadata.Name] = item.Metadata.ResourceVersion
	}
	return versions
}

// countLists returns how many lists of a resource the API server has served.
func countLists(t testing.TB, p *controlplane.Plane, resource string) (n float64) {
	t.Helper()
	resp, err := p.Client().Get(p.URL + "/metrics")
	must(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `resource="`+resource+`"`) && strings.Contains(line, `verb="LIST"`) {
			var count float64
			_, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &count)
			must(t, err)
			n += count
		}
	}
	must(t, lines.Err())
	return n
}

func TestFirstSyncEqualsCluster(t *testing.T) {
	p := newControlPlane(t)
	must(t, p.CreateWorkloads(t.Context(), controlplane.Workloads{}))
	for i := range 1203 {
		must(t, p.Create(t.Context(), configMaps, configMap(fmt.Sprintf("m%d", i), "x")))
	}
	for _, streamed := range []bool{false, true} {
		t.Run(fmt.Sprintf("streamed %v", streamed), func(t *testing.T) {
			r := newRecorder()
			cfg := fastConfig
			cfg.StreamSnapshots = streamed
			start(t, connect(t, p.Kubeconfig()), watch.Selection{Kinds: []string{"all", "secret"}}, r, cfg, nil)
			r.await(t, "all feeds to be live", func() bool { return len(r.feeds) > 30 && allLive(r) })
			r.check(t)
			for _, w := range r.specs {
				if w.Kind.Name == "Lease" {
					continue // the API server renews its own all the time
				}
				if got, want := r.feeds[w.Feed].objects, listVersions(t, p, pathOf(w.Resource)); !maps.Equal(got, want) {
					t.Errorf("%s: got %d objects, want %d", w.Feed, len(got), len(want))
				}
			}
			if body := r.feeds[secretFeed].bodies["demo/password"]; body == "" || strings.Contains(body, `"data"`) || strings.Contains(body, "Y29ycmVjdCBob3JzZQ") {
				t.Errorf("got Secret %s, want only its metadata", body)
			}
		})
	}
}

func allLive(r *recorder) bool {
	for _, f := range r.feeds {
		if f.state != vedette.FeedLive {
			return false
		}
	}
	return len(r.feeds) > 0
}

func pathOf(r vedette.Resource) string {
	if r.Kind.Group == "" {
		return "/api/v1/" + r.Plural
	}
	return "/apis/" + r.APIVersion() + "/" + r.Plural
}

func TestChangesAreFollowed(t *testing.T) {
	p := newControlPlane(t)
	r := newRecorder()
	start(t, connect(t, p.Kubeconfig()), watch.Selection{Kinds: []string{"cm"}}, r, fastConfig, nil)
	r.await(t, "the feed to be live", func() bool { return allLive(r) })
	must(t, p.Create(t.Context(), configMaps, configMap("a", "1")))
	must(t, p.Create(t.Context(), configMaps, configMap("b", "1")))
	must(t, p.Patch(t.Context(), configMaps+"/a", object{"data": object{"value": "2"}}))
	must(t, p.Delete(t.Context(), configMaps+"/b"))
	r.await(t, "a to change and b to disappear", func() bool {
		return strings.Contains(r.feeds[configMapFeed].bodies["default/a"], `"value":"2"`) && !r.has(configMapFeed, "default/b")
	})
	if got, want := r.feeds[configMapFeed].upserts, 3; got < want {
		t.Errorf("got %d upserts, want %d", got, want)
	}
	r.check(t)
}

func TestResumeWithoutList(t *testing.T) {
	p := newControlPlane(t)
	c := connect(t, p.Kubeconfig())
	r := newRecorder()
	_, stop := start(t, c, watch.Selection{Kinds: []string{"cm"}}, r, fastConfig, nil)
	must(t, p.Create(t.Context(), configMaps, configMap("before", "1")))
	r.await(t, "the first object", func() bool { return r.has(configMapFeed, "default/before") })
	stop()
	must(t, p.Create(t.Context(), configMaps, configMap("while", "1")))
	must(t, p.Delete(t.Context(), configMaps+"/before"))
	listsBefore := countLists(t, p, "configmaps")

	w, _ := start(t, c, watch.Selection{Kinds: []string{"cm"}}, r, fastConfig, r.marks())
	r.await(t, "the changes made in between", func() bool {
		return r.has(configMapFeed, "default/while") && !r.has(configMapFeed, "default/before")
	})
	if listsAfter := countLists(t, p, "configmaps"); listsAfter != listsBefore {
		t.Errorf("got %v lists, want none", listsAfter-listsBefore)
	}
	if n := r.feeds[configMapFeed].snapshots; n != 1 {
		t.Errorf("got %d snapshots, want 1", n)
	}

	w.Reset(configMapFeed, "")
	r.await(t, "a snapshot after the reset", func() bool { return r.feeds[configMapFeed].snapshots == 2 })
	if listsAfter := countLists(t, p, "configmaps"); listsAfter == listsBefore {
		t.Error("got no list after a reset, want one: the counter does not work")
	}
	r.check(t)
}

// TestFeedsRecoverAfterAPIServerRestart allows one more snapshot for each feed, because a
// new API server does not know marks from before its start.
func TestFeedsRecoverAfterAPIServerRestart(t *testing.T) {
	p := newControlPlane(t)
	r := newRecorder()
	start(t, connect(t, p.Kubeconfig()), watch.Selection{Kinds: []string{"cm", "secret", "pod", "deployment"}}, r, fastConfig, nil)
	r.await(t, "all feeds to be live", func() bool { return len(r.feeds) == 4 && allLive(r) })
	p.KillAPIServer()
	r.await(t, "a feed to report a failure", func() bool { return r.state(configMapFeed) == vedette.FeedFailing })
	if m := r.feeds[configMapFeed].message; !strings.Contains(m, p.URL) {
		t.Errorf("got message %q, want it to name the API server", m)
	}
	must(t, p.StartAPIServer(t.Context()))
	must(t, p.Create(t.Context(), configMaps, configMap("after", "1")))
	r.await(t, "the object created after the restart", func() bool { return r.has(configMapFeed, "default/after") && allLive(r) })
	for name, f := range r.feeds {
		if f.snapshots > 2 {
			t.Errorf("%s: got %d snapshots, want at most 2", name, f.snapshots)
		}
	}
	r.check(t)
}

func TestExpiredMarkCausesSnapshot(t *testing.T) {
	p := newControlPlane(t)
	r := newRecorder()
	start(t, connect(t, p.Kubeconfig()), watch.Selection{Kinds: []string{"cm"}}, r, fastConfig, nil)
	must(t, p.Create(t.Context(), configMaps, configMap("gone", "1")))
	must(t, p.Create(t.Context(), configMaps, configMap("stays", "1")))
	r.await(t, "both objects", func() bool { return r.has(configMapFeed, "default/gone") && r.has(configMapFeed, "default/stays") })
	must(t, p.Expire(t.Context()))
	must(t, p.Delete(t.Context(), configMaps+"/gone"))
	r.await(t, "a second snapshot", func() bool {
		return r.feeds[configMapFeed].snapshots > 1 && r.state(configMapFeed) == vedette.FeedLive && !r.has(configMapFeed, "default/gone")
	})
	if want := listVersions(t, p, "/api/v1/configmaps"); !maps.Equal(r.feeds[configMapFeed].objects, want) {
		t.Errorf("got %v, want %v", r.feeds[configMapFeed].objects, want)
	}
	r.check(t)
}

// crd returns a CustomResourceDefinition.
func crd(group, kind, plural string, versions ...string) object {
	var served []object
	for i, v := range versions {
		served = append(served, object{"name": v, "served": true, "storage": i == 0,
			"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
	}
	return object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": plural + "." + group},
		"spec": object{"group": group, "scope": "Namespaced", "versions": served,
			"names": object{"kind": kind, "plural": plural, "singular": strings.ToLower(kind), "listKind": kind + "List"}}}
}

func TestCustomKindsAreAddedChangedAndRemoved(t *testing.T) {
	p := newControlPlane(t)
	const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	for name, kinds := range map[string][]string{"the kind alone": {"widget"}, "with a feed of definitions": {"widget", "crd"}} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder()
			start(t, connect(t, p.Kubeconfig()), watch.Selection{Kinds: kinds}, r, fastConfig, nil)
			r.await(t, "a declaration without the kind", func() bool { return len(r.events) > 0 && len(r.feeds) == len(kinds)-1 })
			widgets := vedette.Feed{Kind: vedette.Kind{Group: "example.org", Name: "Widget"}}

			must(t, p.Create(t.Context(), crds, crd("example.org", "Widget", "widgets", "v1beta1")))
			r.await(t, "the feed of the new kind", func() bool { return r.state(widgets) == vedette.FeedLive })
			must(t, p.Create(t.Context(), "/apis/example.org/v1beta1/namespaces/default/widgets",
				object{"apiVersion": "example.org/v1beta1", "kind": "Widget", "metadata": object{"name": "w"}, "spec": object{"n": 1}}))
			r.await(t, "an object of the new kind", func() bool { return r.has(widgets, "default/w") })

			must(t, p.Apply(t.Context(), crds+"/widgets.example.org", crd("example.org", "Widget", "widgets", "v1beta1", "v1")))
			r.await(t, "the feed to continue in the preferred version", func() bool {
				i := slices.IndexFunc(r.specs, func(w watch.FeedSpec) bool { return w.Feed == widgets })
				return i >= 0 && r.specs[i].Resource.Version == "v1" && r.state(widgets) == vedette.FeedLive
			})
			// The API server's watch cache starts empty with the new version.
			if n := r.feeds[widgets].snapshots; n > 2 {
				t.Errorf("got %d snapshots, want at most one per version", n)
			}

			must(t, p.Delete(t.Context(), crds+"/widgets.example.org"))
			r.await(t, "the feed to disappear", func() bool { return r.feeds[widgets] == nil })
			r.check(t)
		})
	}
}

func TestDeniedFeedStartsOnceGranted(t *testing.T) {
	p := newControlPlane(t)
	kubeconfig, err := p.UserKubeconfig("jane")
	must(t, err)
	r := newRecorder()
	start(t, connect(t, kubeconfig), watch.Selection{Kinds: []string{"cm"}, Namespaces: []string{"default"}}, r, fastConfig, nil)
	feed := vedette.Feed{Kind: configMapFeed.Kind, Namespace: "default"}
	r.await(t, "the feed to be denied", func() bool { return r.state(feed) == vedette.FeedDenied })
	if m := r.feeds[feed].message; !strings.Contains(m, `User "jane" cannot list resource "configmaps"`) {
		t.Errorf("got message %q, want it to name the user and the verb", m)
	}
	rbac := "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
	must(t, p.Create(t.Context(), rbac+"/roles", object{"metadata": object{"name": "reader"},
		"rules": []object{{"apiGroups": []string{""}, "resources": []string{"configmaps"}, "verbs": []string{"list", "watch"}}}}))
	must(t, p.Create(t.Context(), rbac+"/rolebindings", object{"metadata": object{"name": "jane"},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
		"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}}}))
	r.await(t, "the feed to be live", func() bool { return r.state(feed) == vedette.FeedLive })
	r.check(t)
}

func TestKubeSystemIdentifiesTheCluster(t *testing.T) {
	p := newControlPlane(t)
	var ns struct{ Metadata struct{ UID string } }
	must(t, p.Get(t.Context(), "/api/v1/namespaces/kube-system", &ns))
	id, namespaces, err := connect(t, p.Kubeconfig()).Identify(t.Context())
	must(t, err)
	if id.UID != ns.Metadata.UID || id.Host != p.URL || !strings.HasPrefix(id.Version, "v1.") || len(id.Fingerprint) != 32*3-1 {
		t.Errorf("got %+v, want the UID of kube-system, host %s, a version and a fingerprint", id, p.URL)
	}
	if !slices.Contains(namespaces, "kube-system") {
		t.Errorf("got namespaces %v, want kube-system among them", namespaces)
	}

	kubeconfig, err := p.UserKubeconfig("nobody")
	must(t, err)
	id, namespaces, err = connect(t, kubeconfig).Identify(t.Context())
	must(t, err)
	if id.UID != "" || namespaces != nil || id.Fingerprint == "" {
		t.Errorf("without permissions: got %+v, %v, want neither UID nor namespaces", id, namespaces)
	}
}

func TestUnavailableAPIServiceMakesOnlyItsGroupUnknown(t *testing.T) {
	p := newControlPlane(t)
	must(t, p.Create(t.Context(), "/api/v1/namespaces/default/services", object{"metadata": object{"name": "dead"},
		"spec": object{"ports": []object{{"port": 443}}, "selector": object{"no": "pod"}}}))
	must(t, p.Create(t.Context(), "/apis/apiregistration.k8s.io/v1/apiservices", object{"metadata": object{"name": "v1.dead.example.org"},
		"spec": object{"group": "dead.example.org", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 1, "insecureSkipTLSVerify": true,
			"service": object{"namespace": "default", "name": "dead"}}}))
	c := connect(t, p.Kubeconfig())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		cat, err := c.Discover(ctx)
		must(t, err)
		if len(cat.Resources) < 30 {
			t.Fatalf("got only %d resources", len(cat.Resources))
		}
		if slices.Contains(cat.UnknownGroups, "dead.example.org") {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("got unknown groups %v, want dead.example.org among them", cat.UnknownGroups)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// TestBlockedSinkLosesNoChanges blocks a sink while more changes happen than any window
// holds, and then unblocks it.
func TestBlockedSinkLosesNoChanges(t *testing.T) {
	p := newControlPlane(t)
	r := newRecorder()
	sink := &blockingSink{Sink: r, unblock: make(chan struct{})}
	start(t, connect(t, p.Kubeconfig()), watch.Selection{Kinds: []string{"cm"}}, sink, fastConfig, nil)
	r.await(t, "the feed to be live", func() bool { return allLive(r) })
	sink.blocked.Store(true)
	value := strings.Repeat("x", 64<<10)
	for i := range 100 {
		must(t, p.Create(t.Context(), configMaps, configMap(fmt.Sprintf("big%d", i), value)))
	}
	close(sink.unblock)
	r.await(t, "all objects", func() bool { return r.has(configMapFeed, "default/big99") })
	if got, want := r.feeds[configMapFeed].objects, listVersions(t, p, "/api/v1/configmaps"); !maps.Equal(got, want) {
		t.Errorf("got %d objects, want %d", len(got), len(want))
	}
	r.check(t)
}

// BenchmarkFirstSync compares lists and streams of 12,000 objects.
func BenchmarkFirstSync(b *testing.B) {
	p := newControlPlane(b)
	value := strings.Repeat("abcdefgh", 600)
	createConfigMaps(b, p, 12000, value)
	b.Run("bare paged list", func(b *testing.B) {
		for b.Loop() {
			readPages(b, p)
		}
	})
	for _, streamed := range []bool{false, true} {
		b.Run(fmt.Sprintf("watcher, streamed %v", streamed), func(b *testing.B) {
			for b.Loop() {
				cfg := fastConfig
				cfg.StreamSnapshots = streamed
				r := newCountingSink()
				_, stop := start(b, connect(b, p.Kubeconfig()), watch.Selection{Kinds: []string{"cm"}}, r, cfg, nil)
				<-r.ended
				stop()
				b.ReportMetric(float64(r.items), "objects")
			}
		})
	}
}

func createConfigMaps(b *testing.B, p *controlplane.Plane, n int, value string) {
	failed := make(chan error, 8)
	for worker := range 8 {
		go func() {
			for i := worker; i < n; i += 8 {
				if err := p.Create(context.Background(), configMaps, configMap(fmt.Sprintf("m%d", i), value)); err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for range 8 {
		must(b, <-failed)
	}
}

// readPages only reads pages, which measures the network and the API server.
func readPages(b *testing.B, p *controlplane.Plane) {
	next := ""
	for {
		req, err := http.NewRequest(http.MethodGet, p.URL+"/api/v1/configmaps?limit=500&continue="+next, nil)
		must(b, err)
		resp, err := p.Client().Do(req)
		must(b, err)
		body, err := io.ReadAll(resp.Body)
		must(b, err)
		resp.Body.Close()
		head := string(body[:min(len(body), 2000)])
		_, rest, found := strings.Cut(head, `"continue":"`)
		if !found {
			return
		}
		next, _, _ = strings.Cut(rest, `"`)
	}
}

// TestFrozenAPIServerIsDetected freezes the process of an API server: connections stay
// open, and there are no more responses.
func TestFrozenAPIServerIsDetected(t *testing.T) {
	p := newControlPlane(t)
	r := newRecorder()
	start(t, connect(t, p.Kubeconfig()), watch.Selection{Kinds: []string{"cm"}}, r, fastConfig, nil)
	r.await(t, "the feed to be live", func() bool { return allLive(r) })
	must(t, p.PauseAPIServer())
	r.await(t, "the feed to fail", func() bool { return r.state(configMapFeed) == vedette.FeedFailing })
	must(t, p.ResumeAPIServer())
	must(t, p.Create(t.Context(), configMaps, configMap("after", "1")))
	r.await(t, "the object created afterwards", func() bool { return r.has(configMapFeed, "default/after") && allLive(r) })
	if n := r.feeds[configMapFeed].snapshots; n != 1 {
		t.Errorf("got %d snapshots, want 1", n)
	}
	r.check(t)
}

// TestFeedsSpreadOverConnections watches more namespaces than one connection has streams,
// and resets feeds while they run.
func TestFeedsSpreadOverConnections(t *testing.T) {
	p := newControlPlane(t)
	var namespaces []string
	for i := range 100 {
		name := fmt.Sprintf("n%d", i)
		namespaces = append(namespaces, name)
		must(t, p.Create(t.Context(), "/api/v1/namespaces", object{"metadata": object{"name": name}}))
	}
	r := newRecorder()
	c, err := kube.Connect(kube.Access{KubeconfigFile: p.Kubeconfig()}, kube.Options{StreamsPerConn: 15})
	must(t, err)
	t.Cleanup(c.Close)
	w, stop := start(t, c, watch.Selection{Kinds: []string{"cm"}, Namespaces: namespaces}, r, fastConfig, nil)
	r.await(t, "all feeds to be live", func() bool { return len(r.feeds) == 100 && allLive(r) })
	for _, name := range namespaces {
		w.Reset(vedette.Feed{Kind: configMapFeed.Kind, Namespace: name}, "")
		must(t, p.Create(t.Context(), "/api/v1/namespaces/"+name+"/configmaps", configMap("x", name)))
	}
	r.await(t, "an object in each", func() bool {
		for _, name := range namespaces {
			if !r.has(vedette.Feed{Kind: configMapFeed.Kind, Namespace: name}, name+"/x") {
				return false
			}
		}
		return true
	})
	if n := countConnections(t, p); n < 100/15 {
		t.Errorf("got %d connections, want at least 7", n)
	}
	stop()
	r.check(t)
}

// countConnections returns the number of connections from this process to the API server.
func countConnections(t *testing.T, p *controlplane.Plane) (n int) {
	port := fmt.Sprintf(":%04X ", portOf(t, p.URL))
	raw, err := os.ReadFile("/proc/self/net/tcp")
	must(t, err)
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Fields(line); len(fields) > 3 && strings.Contains(fields[2]+" ", port) && fields[3] == "01" {
			n++
		}
	}
	return n
}

func portOf(t *testing.T, address string) int {
	u, err := url.Parse(address)
	must(t, err)
	port, err := strconv.Atoi(u.Port())
	must(t, err)
	return port
}
