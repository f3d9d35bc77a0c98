package front50_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/server/front50"
	"github.com/vedette-io/vedette/test/ports"
)

func newClient(t *testing.T, handle http.HandlerFunc) *front50.Client {
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return front50.New(front50.Config{BaseURL: server.URL + "/"})
}

func TestProjectIsReadForTheUser(t *testing.T) {
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() != "/v2/projects/web%2Fshop" || r.Header.Get("X-Spinnaker-User") != "ann" || r.Header.Get(requestid.Header) != "r-1" {
			t.Errorf("got a request of %s by %q", r.URL, r.Header.Get("X-Spinnaker-User"))
		}
		fmt.Fprint(w, `{"id":"1","name":"web/shop","email":"a@b.c","config":{"applications":["web"],"clusters":[
			{"account":"prod","stack":"*","detail":"*"},{"account":"dev","stack":"","applications":[]}]}}`)
	})
	got, err := c.Project(requestid.With(t.Context(), "r-1"), "web/shop", http.Header{"X-Spinnaker-User": {"ann"}})
	if err != nil {
		t.Fatal(err)
	}
	all, none := "*", ""
	want := front50.Project{ID: "1", Name: "web/shop", Config: front50.ProjectConfig{Applications: []string{"web"}, Clusters: []front50.ProjectCluster{
		{Account: "prod", Stack: &all, Detail: &all}, {Account: "dev", Stack: &none, Applications: []string{}}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestSearchReturnsNoMoreThanAsked(t *testing.T) {
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() != "/v2/projects?name=a+b&pageSize=2" {
			t.Errorf("got a request of %s", r.URL)
		}
		fmt.Fprint(w, `[{"name":"a"},{"name":"b"},{"name":"more than asked for"}]`)
	})
	got, err := c.SearchProjects(t.Context(), url.Values{"name": {"a b"}}, 2, nil)
	if err != nil || len(got) != 2 || got[1].Name != "b" {
		t.Errorf("got %+v and error %v, want a and b", got, err)
	}
}

func TestFront50ErrorsAreExplained(t *testing.T) {
	for _, tt := range []struct {
		name    string
		project string
		answer  http.HandlerFunc
		kind    vedette.ErrorKind
		text    string
	}{
		{"an unknown project", "x", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"status":404,"error":"Not Found","message":"No project found"}`)
		}, vedette.NotFound, "does not have"},
		{"the 404 of a gateway", "x", http.NotFound, vedette.Unavailable, "check the address"},
		{"a 404 without a body", "x", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, vedette.Unavailable, "check the address"},
		{"a name that would change the path", "..", nil, vedette.NotFound, "is not the name"},
		{"no name", "", nil, vedette.NotFound, "is not the name"},
		{"an error", "x", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, vedette.Unavailable, "500"},
		{"a login page", "x", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, vedette.Unavailable, "302"},
		{"garbage", "x", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, vedette.Unavailable, "not valid"},
		{"another type", "x", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"config":[]}`) }, vedette.Unavailable, "not valid"},
		{"half an answer", "x", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"name":"x"`)
		}, vedette.Unavailable, "read Front50's answer"},
		{"a very large answer", "x", func(w http.ResponseWriter, _ *http.Request) {
			for range 17 {
				fmt.Fprint(w, strings.Repeat(" ", 1<<20))
			}
		}, vedette.Unavailable, "more than 16 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newClient(t, tt.answer).Project(t.Context(), tt.project, nil)
			if vedette.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want %s with %q", err, tt.kind, tt.text)
			}
		})
	}
}

func TestUnreachableFront50IsUnavailable(t *testing.T) {
	_, err := front50.New(front50.Config{BaseURL: "http://" + ports.Unused(t)}).Project(t.Context(), "x", nil)
	if vedette.KindOf(err) != vedette.Unavailable || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v, want unavailable", err)
	}
}

func TestInvalidURLsAreRejected(t *testing.T) {
	for address, valid := range map[string]bool{"http://spin-front50:8080": true, "https://front50.example.com/base/": true, "": false,
		"spin-front50:8080": false, "ftp://x": false, "http://x?a=b": false, "http://": false} {
		if err := (&front50.Config{BaseURL: address}).Validate(); (err == nil) != valid {
			t.Errorf("%q: got %v, want valid %v", address, err, valid)
		}
	}
}
