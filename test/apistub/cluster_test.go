package apistub_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/test/apistub"
)

const objects = `[
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","uid":"n1","resourceVersion":"5"}},
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b","namespace":"shop","resourceVersion":"7","labels":{"app":"web"}},"spec":{"n":12345678901234567}},
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"shop","resourceVersion":"9"}},
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c","namespace":"other","resourceVersion":"8"}},
{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"shop"},"involvedObject":{"kind":"Pod","name":"a"}},
{"apiVersion":"example.com/v1","kind":"Cache","metadata":{"name":"k","namespace":"shop"}},
{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"caches.example.com"},
 "spec":{"group":"example.com","scope":"Namespaced","names":{"kind":"Cache","plural":"caches","singular":"cache"},"versions":[{"name":"v1","served":true},{"name":"v0","served":false}]}}
]`

func newCluster(t *testing.T) *apistub.Cluster {
	t.Helper()
	c, err := parse(objects)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func parse(text string) (*apistub.Cluster, error) {
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	return apistub.New(list)
}

// get returns the status and the body of an answer.
func get(t *testing.T, c *apistub.Cluster, path, accept string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

const (
	asJSON     = "application/json"
	asMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

func TestObjectsAndListsAreServed(t *testing.T) {
	c := newCluster(t)
	for _, tt := range []struct{ name, path, accept, want string }{
		{"an object", "/api/v1/namespaces/shop/pods/b", asJSON,
			`200 {"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"app":"web"},"name":"b","namespace":"shop","resourceVersion":"7"},"spec":{"n":12345678901234567}}`},
		{"metadata", "/api/v1/namespaces/shop", asMetadata,
			`200 {"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"shop","resourceVersion":"5","uid":"n1"}}`},
		{"a custom resource", "/apis/example.com/v1/namespaces/shop/caches/k", asJSON,
			`200 {"apiVersion":"example.com/v1","kind":"Cache","metadata":{"name":"k","namespace":"shop"}}`},
		{"a page", "/api/v1/pods?limit=1", asJSON,
			`200 {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"1","remainingItemCount":2},"items":[{"metadata":{"name":"c","namespace":"other","resourceVersion":"8"}}]}`},
		{"the last page", "/api/v1/pods?limit=2&continue=2", asMetadata,
			`200 {"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":[{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"labels":{"app":"web"},"name":"b","namespace":"shop","resourceVersion":"7"}}]}`},
		{"a label selector", "/api/v1/namespaces/shop/pods?labelSelector=app+in+(web)", asJSON,
			`200 {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"labels":{"app":"web"},"name":"b","namespace":"shop","resourceVersion":"7"},"spec":{"n":12345678901234567}}]}`},
		{"Events of an object", "/api/v1/namespaces/shop/events?fieldSelector=involvedObject.kind%3DPod,involvedObject.name%3Da", asJSON,
			`200 {"kind":"EventList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"involvedObject":{"kind":"Pod","name":"a"},"metadata":{"name":"e","namespace":"shop"}}]}`},
		{"Events of another", "/api/v1/events?fieldSelector=involvedObject.name%3Db", asJSON,
			`200 {"kind":"EventList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, body := get(t, c, tt.path, tt.accept)
			if got := fmt.Sprintf("%d %s", status, body); got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestUnknownPathsAreNotFound(t *testing.T) {
	c := newCluster(t)
	for path, want := range map[string]int{
		"/api/v1/namespaces/shop/pods/x":            http.StatusNotFound,
		"/api/v1/namespaces/other/pods/a":           http.StatusNotFound,
		"/api/v1/namespaces/shop/pods/a/log":        http.StatusNotFound,
		"/apis/metrics.k8s.io/v1beta1/pods":         http.StatusNotFound,
		"/apis/example.com/v0/caches":               http.StatusNotFound,
		"/apis":                                     http.StatusOK,
		"/apis/apps":                                http.StatusNotFound,
		"/":                                         http.StatusNotFound,
		"/api/v1/pods?labelSelector=a+in":           http.StatusBadRequest,
		"/api/v1/pods?fieldSelector=a":              http.StatusBadRequest,
		"/api/v1/pods?continue=x":                   http.StatusBadRequest,
		"/api/v1/pods?continue=99":                  http.StatusBadRequest,
		"/api/v1/pods?continue=-1":                  http.StatusBadRequest,
		"/openapi/v3/apis/apps/v1":                  http.StatusNotFound,
		"/apis/apps/v1/namespaces/shop/deployments": http.StatusOK,
	} {
		if got, body := get(t, c, path, asJSON); got != want {
			t.Errorf("%s: got status %d, want %d: %s", path, got, want, body)
		}
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodDelete, "/api/v1/namespaces/shop/pods/a", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a delete: got status %d, want 405", w.Code)
	}
}

func TestDiscoveryListsEachGroup(t *testing.T) {
	c := newCluster(t)
	_, core := get(t, c, "/api", asJSON)
	_, groups := get(t, c, "/apis", asJSON)
	_, version := get(t, c, "/apis/example.com/v1", asJSON)
	if !strings.Contains(core, `"resource":"pods"`) || strings.Contains(core, `"resource":"deployments"`) {
		t.Errorf("/api: got %s, want the core group only", core)
	}
	if !strings.Contains(groups, `"resource":"deployments"`) || !strings.Contains(groups, `"resource":"caches"`) {
		t.Errorf("/apis: got %s, want apps and example.com", groups)
	}
	if !strings.Contains(version, `"name":"caches"`) || !strings.Contains(version, `"groupVersion":"example.com/v1"`) {
		t.Errorf("/apis/example.com/v1: got %s, want caches", version)
	}
}

func TestInvalidObjectsAreRejected(t *testing.T) {
	for _, text := range []string{
		`[1]`, `[{"kind":"Pod","metadata":{"name":"a"}}]`, `[{"apiVersion":"v1","kind":"Pod","metadata":{}}]`,
		`[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}]`, `[{"apiVersion":"v1","kind":"Node","metadata":{"name":"a","namespace":"b"}}]`,
		`[{"apiVersion":"example.com/v1","kind":"Unknown","metadata":{"name":"a"}}]`,
		`[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"},"spec":1}]`,
	} {
		if _, err := parse(text); err == nil {
			t.Errorf("%s: got no error", text)
		}
	}
}

// TestWatchStaysOpenAfterItsSnapshot reads a streamed snapshot, and checks that the watch then stays open until it is
// canceled.
func TestWatchStaysOpenAfterItsSnapshot(t *testing.T) {
	s := apistub.Start(newCluster(t))
	t.Cleanup(s.Close)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	path := "/api/v1/namespaces/shop/pods?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for _, want := range []string{`"ADDED"`, `"ADDED"`, `"k8s.io/initial-events-end":"true"`} {
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("got %s, %v, want %s", lines.Text(), lines.Err(), want)
		}
	}
	if !strings.Contains(lines.Text(), `"resourceVersion":"9"`) {
		t.Errorf("got bookmark %s, want version 9", lines.Text())
	}
	cancel()
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("got the end of the watch, want it open until it is canceled")
	}
}
