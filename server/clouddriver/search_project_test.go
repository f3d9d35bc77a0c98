package clouddriver_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/front50"
	"github.com/vedette-io/vedette/server/readtest"
)

// TestSearchFindsProjectsOfFront50 searches in a Front50 that has the project "shop", and fails for "broken".
func TestSearchFindsProjectsOfFront50(t *testing.T) {
	projects := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch {
		case query.Get("name") == "broken" || query.Get("name") != query.Get("applications"):
			w.WriteHeader(http.StatusInternalServerError)
		case query.Get("name") == "shop":
			fmt.Fprint(w, `[{"id":"a b","name":"shop","email":"x@y.z","config":{"applications":["web"]}}]`)
		default:
			fmt.Fprint(w, `[]`)
		}
	}))
	defer projects.Close()
	server := serve(t, clouddriver.Config{Store: readtest.New(t).Store, Projects: front50.New(front50.Config{BaseURL: projects.URL})})
	const found = `[{"id":"a b","name":"shop","config":{"applications":["web"]},"type":"projects","url":"/projects/a%20b"}]`
	for _, tt := range []struct{ name, query, results, platform string }{
		{"found", "q=shop&type=projects", found, "aws"},
		{"with other types", "q=shop&type=pod,projects", found, "aws"},
		{"by platform", "q=shop&type=projects&platform=front50", found, "front50"},
		{"another type", "q=shop&type=pod", `[]`, "aws"},
		{"another platform", "q=shop&type=projects&platform=kubernetes", `[]`, "kubernetes"},
		{"second page", "q=shop&type=projects&page=2", `[]`, "aws"},
		{"nothing", "q=nope&type=projects", `[]`, "aws"},
		{"an error of Front50", "q=broken&type=projects", `[]`, "aws"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response, body := get(t, server+"/search?"+tt.query)
			if got := string(body); response.StatusCode != http.StatusOK || !strings.Contains(got, `"platform":"`+tt.platform+`"`) ||
				!strings.HasSuffix(strings.TrimSpace(got), `"results":`+tt.results+`}]`) {
				t.Errorf("got %d %s, want %+v", response.StatusCode, got, tt)
			}
		})
	}
}
