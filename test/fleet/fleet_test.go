package fleet_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/test/fleet"
)

var (
	pod       = vedette.Kind{Name: "Pod"}
	configMap = vedette.Kind{Name: "ConfigMap"}
	secret    = vedette.Kind{Name: "Secret"}
	ingress   = vedette.Kind{Group: "networking.k8s.io", Name: "Ingress"}
	objects   = map[vedette.Kind]int{pod: 24, configMap: 16, secret: 5, ingress: 4}
)

func feedOf(k vedette.Kind) vedette.Feed { return vedette.Feed{Kind: k} }

// expectedChanges returns the number of changes by feed, for feeds of all namespaces.
func expectedChanges(changes map[vedette.Kind]int) map[vedette.Feed]int {
	counts := map[vedette.Feed]int{}
	for kind := range objects {
		counts[feedOf(kind)] = changes[kind]
	}
	return counts
}

// TestAgentSeesSameEventsAsWithRealCluster runs the agent's watcher through the same events in a
// simulated and in a real cluster.
func TestAgentSeesSameEventsAsWithRealCluster(t *testing.T) {
	worlds := map[string]world{"simulated": newSimulated(t, objects), "real": newReal(t, objects)}
	for _, scenario := range []struct {
		name string
		run  func(*testing.T, world, *eventLog)
	}{
		{"changes", changes}, {"streamed snapshots", streamedSnapshots}, {"resume", resume},
		{"an expired mark", tooOld}, {"one namespace", oneNamespace}, {"omitted namespaces", omittedNamespaces},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			recorded := map[string]map[vedette.Feed][]string{}
			for name, w := range worlds {
				s := newEventLog()
				scenario.run(t, w, s)
				recorded[name] = s.feeds
			}
			compare(t, recorded["simulated"], recorded["real"])
		})
	}
}

func compare(t *testing.T, simulated, actual map[vedette.Feed][]string) {
	t.Helper()
	if len(simulated) != len(actual) || len(actual) == 0 {
		t.Errorf("got %d simulated feeds and %d real ones", len(simulated), len(actual))
	}
	for feed, want := range actual {
		if got := simulated[feed]; !slices.Equal(got, want) {
			t.Errorf("%s: simulated\n  %s\nreal\n  %s", feed, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}
}

var allKinds = watch.Selection{Kinds: []string{"pod", "configmap", "secret", "ingress"}}

func changes(t *testing.T, w world, s *eventLog) {
	defer run(t, w, allKinds, s, false, nil)()
	s.waitLive(t, expectedChanges(nil))
	w.put(t, configMap, 1)
	w.put(t, configMap, 20)
	w.delete(t, configMap, 1)
	w.put(t, configMap, 1)
	w.put(t, secret, 2)
	w.delete(t, secret, 2)
	w.delete(t, ingress, 3)
	s.waitLive(t, expectedChanges(map[vedette.Kind]int{configMap: 4, secret: 2, ingress: 1}))
}

func streamedSnapshots(t *testing.T, w world, s *eventLog) {
	defer run(t, w, allKinds, s, true, nil)()
	s.waitLive(t, expectedChanges(nil))
}

func resume(t *testing.T, w world, s *eventLog) {
	stop := run(t, w, allKinds, s, false, nil)
	s.waitLive(t, expectedChanges(nil))
	stop()
	w.put(t, configMap, 2)
	w.delete(t, configMap, 3)
	w.put(t, configMap, 3)
	defer run(t, w, allKinds, s, false, s.marks)()
	s.waitLive(t, expectedChanges(map[vedette.Kind]int{configMap: 3}))
	s.waitFor(t, "each feed to be live again", func() bool {
		for kind := range objects {
			if strings.Count(strings.Join(s.feeds[feedOf(kind)], "\n"), "is live") < 2 {
				return false
			}
		}
		return true
	})
}

func tooOld(t *testing.T, w world, s *eventLog) {
	marks := map[vedette.Feed]vedette.Mark{}
	for kind := range objects {
		marks[feedOf(kind)] = "1"
	}
	w.expire(t)
	defer run(t, w, allKinds, s, false, marks)()
	s.waitFor(t, "each feed to be live after a snapshot", func() bool {
		for kind := range objects {
			lines := s.feeds[feedOf(kind)]
			if len(lines) < 2 || lines[len(lines)-1] != "is live" || !strings.HasPrefix(lines[len(lines)-2], "snapshot") {
				return false
			}
		}
		return true
	})
}

func oneNamespace(t *testing.T, w world, s *eventLog) {
	defer run(t, w, watch.Selection{Kinds: []string{"pod", "configmap"}, Namespaces: []string{"search"}}, s, false, nil)()
	s.waitLive(t, map[vedette.Feed]int{{Kind: pod, Namespace: "search"}: 0, {Kind: configMap, Namespace: "search"}: 0})
}

func omittedNamespaces(t *testing.T, w world, s *eventLog) {
	defer run(t, w, watch.Selection{Kinds: []string{"configmap"}, OmitNamespaces: []string{"search", "web"}}, s, false, nil)()
	s.waitLive(t, map[vedette.Feed]int{feedOf(configMap): 0})
}

// page is a decoded list.
type page struct {
	Metadata struct {
		ResourceVersion, Continue string
	}
	Items []struct {
		Metadata struct{ Name, ResourceVersion string }
	}
}

func get(t *testing.T, f *fleet.Fleet, path string, into any) int {
	t.Helper()
	return send(t, f, http.MethodGet, path, "", "", into)
}

func send(t *testing.T, f *fleet.Fleet, method, path, contentType, body string, into any) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), method, f.URL(0)+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	return resp.StatusCode
}

func TestPagesShowOneRevision(t *testing.T) {
	w := newSimulated(t, map[vedette.Kind]int{configMap: 10})
	c := w.f.Cluster(0)
	var first, second page
	get(t, w.f, "/api/v1/configmaps?limit=4", &first)
	changed := c.Put(configMap, 5)
	c.Delete(configMap, 6)
	c.Put(configMap, 10)
	get(t, w.f, "/api/v1/configmaps?continue="+first.Metadata.Continue, &second)
	if len(first.Items) != 4 || len(second.Items) != 6 || second.Metadata.ResourceVersion != first.Metadata.ResourceVersion {
		t.Errorf("got pages of %d and %d objects at %s and %s", len(first.Items), len(second.Items), first.Metadata.ResourceVersion, second.Metadata.ResourceVersion)
	}
	if got := second.Items[1].Metadata.ResourceVersion; got == fmt.Sprint(changed) {
		t.Error("the second page contains a change after the first page")
	}
	c.Expire()
	var gone struct{ Reason string }
	if code := get(t, w.f, "/api/v1/configmaps?continue="+first.Metadata.Continue, &gone); code != http.StatusGone || gone.Reason != "Expired" {
		t.Errorf("expired page: got %d %s", code, gone.Reason)
	}
}

func TestChurnKeepsObjectCountStable(t *testing.T) {
	w := newSimulated(t, map[vedette.Kind]int{configMap: 200, pod: 200})
	before := w.f.Cluster(0).Count()
	w.f.Step(1000)
	if after := w.f.Cluster(0).Count(); after < before/2 || after > before*2 || after == before {
		t.Errorf("got %d objects before and %d after", before, after)
	}
	n := 0
	for o := range w.f.Cluster(0).Objects(pod) {
		if o.UID == "" || o.ResourceVersion == "" {
			t.Errorf("%s: got uid %q and version %q", o.Key, o.UID, o.ResourceVersion)
		}
		n++
	}
	if n == 0 || n == 200 {
		t.Errorf("got %d pods after 1000 changes, had 200", n)
	}
}

func TestHeldRequestsAreAnsweredOnRelease(t *testing.T) {
	w := newSimulated(t, map[vedette.Kind]int{configMap: 1})
	w.f.Cluster(0).Hold()
	answered := make(chan int)
	go func() {
		var list page
		get(t, w.f, "/api/v1/configmaps", &list)
		answered <- len(list.Items)
	}()
	select {
	case <-answered:
		t.Error("a request was answered during Hold")
	case <-time.After(50 * time.Millisecond): // a response takes less time
		w.f.Cluster(0).Release()
	}
	if n := <-answered; n != 1 {
		t.Errorf("after Release: got %d objects", n)
	}
}

// TestPatchesMakeNewVersions patches an object, and reads it by itself and in the list.
func TestPatchesMakeNewVersions(t *testing.T) {
	const merge = "application/merge-patch+json"
	w := newSimulated(t, map[vedette.Kind]int{configMap: 10})
	c := w.f.Cluster(0)
	objects := slices.Collect(c.Objects(configMap))
	path := func(o vedette.Object) string {
		return "/api/v1/namespaces/" + o.Key.Namespace + "/configmaps/" + o.Key.Name
	}
	var got struct {
		Metadata struct{ Name, UID, ResourceVersion string }
	}
	for _, o := range objects {
		if code := get(t, w.f, path(o), &got); code != http.StatusOK || got.Metadata.Name != o.Key.Name || got.Metadata.UID != o.UID || got.Metadata.ResourceVersion != o.ResourceVersion {
			t.Errorf("get %s at %s: got %d %+v", o.Key, o.ResourceVersion, code, got)
		}
	}
	patched := objects[7]
	if code := send(t, w.f, http.MethodPatch, path(patched), merge, "{}", &got); code != http.StatusOK || got.Metadata.UID != patched.UID || got.Metadata.ResourceVersion == patched.ResourceVersion {
		t.Errorf("patch: got %d %+v", code, got)
	}
	for i, o := range slices.Collect(c.Objects(configMap)) {
		want := objects[i].ResourceVersion
		if i == 7 {
			want = got.Metadata.ResourceVersion
		}
		if o.ResourceVersion != want {
			t.Errorf("list: got %s at version %s, want %s", o.Key, o.ResourceVersion, want)
		}
	}
	if counts := w.f.Counts(); counts.Gets != 10 || counts.Patches != 1 {
		t.Errorf("%+v", counts)
	}
	c.Delete(configMap, 7)
	for _, tt := range []struct {
		method, path, contentType, body string
		code                            int
	}{
		{http.MethodGet, path(patched), "", "", http.StatusNotFound},
		{http.MethodPatch, path(patched), merge, "{}", http.StatusNotFound},
		{http.MethodPatch, path(objects[1]), merge, "{", http.StatusBadRequest},
		{http.MethodPatch, path(objects[1]), "text/plain", "{}", http.StatusUnsupportedMediaType},
		{http.MethodPatch, "/api/v1/configmaps", merge, "{}", http.StatusMethodNotAllowed},
		{http.MethodDelete, path(objects[1]), "", "", http.StatusMethodNotAllowed},
	} {
		var refusal struct{ Code int }
		if code := send(t, w.f, tt.method, tt.path, tt.contentType, tt.body, &refusal); code != tt.code || refusal.Code != tt.code {
			t.Errorf("%s %s with body %q: got %d %+v, want %d", tt.method, tt.path, tt.body, code, refusal, tt.code)
		}
	}
}
