package clouddriver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/readtest"
)

// FuzzViews requests arbitrary paths. Every answer must be JSON or empty, and no request may fail
// inside the server or keep memory.
func FuzzViews(f *testing.F) {
	requests, err := os.ReadFile("testdata/views/requests.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(requests)) {
		path, query, _ := strings.Cut(strings.TrimSpace(line), "?")
		f.Add(path, query)
	}
	f.Add("/applications/%2F/clusters/%00/%ff/kubernetes", "expand=%zz")
	f.Add("/applications/shop/clusters/prod/deployment%20web/kubernetes/shop/serverGroups/target/%F0%9F%98%80/x", "onlyEnabled&validateOldest")
	fuzzRequests(f, clouddriver.Config{Store: viewWorld(f).Store, Projects: fakeProjects{}})
}

// FuzzInfrastructure is FuzzViews for the search, load balancers, security groups and raw resources.
func FuzzInfrastructure(f *testing.F) {
	for _, request := range []string{"search?q=shop&type=applications,clusters,serverGroups&pageSize=2&page=2", "search?q=%2A%5B%25_%21&type=&type=pod",
		"search?q=prod:shop:&type=loadBalancers&platform=front50", "securityGroups?region=", "securityGroups/prod?region=shop",
		"securityGroups/prod/kubernetes/networkPolicy%20other", "securityGroups/prod/kubernetes//x%20y", "kubernetes/loadBalancers/service%20Zeta",
		"kubernetes/loadBalancers/prod/shop/ingress%20shop-web", "applications/shop/rawResources", "applications/shop/loadBalancers",
		"admin/db/truncate/x", "credentials/type/%20", "tags/%7Bid%7D", "v1/data/static/%7Bid%7D", "images/%7Bimage%7D/x", "cache/introspection"} {
		path, query, _ := strings.Cut(request, "?")
		f.Add(path, query)
	}
	fuzzRequests(f, clouddriver.Config{Store: infrastructureWorld(f).Store, Projects: fakeProjects{}})
}

func fuzzRequests(f *testing.F, cfg clouddriver.Config) {
	limiter := readlimit.New(readlimit.Config{})
	cfg.ReadLimiter = limiter
	handler := clouddriver.New(cfg)
	free, release := readtest.Exhaust(limiter)
	release()
	f.Fuzz(func(t *testing.T, path, query string) {
		escaped := "/" + strings.TrimLeft(path, "/")
		target, err := url.ParseRequestURI(escaped)
		if err != nil {
			t.Skip()
		}
		target.RawQuery = query
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.URL = target
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, r)
		body := recorder.Body.Bytes()
		if code := recorder.Code; code >= 500 && code != http.StatusServiceUnavailable && !strings.HasPrefix(path, "/manifests") || len(body) > 0 && !json.Valid(body) {
			t.Errorf("%s?%s: got %d %s", path, query, code, body)
		}
		after, release := readtest.Exhaust(limiter)
		release()
		if after != free {
			t.Errorf("%s?%s: got %d bytes free, want %d as before", path, query, after, free)
		}
	})
}
