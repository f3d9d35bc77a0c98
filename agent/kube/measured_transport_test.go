package kube_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
)

// TestRequestsOnAllConnectionsAreMeasured checks that requests on all four kinds of connections are measured.
func TestRequestsOnAllConnectionsAreMeasured(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/denied" {
			w.WriteHeader(http.StatusForbidden)
		}
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	var mu sync.Mutex
	var got []string
	c := kubetest.Connect(t, server, kube.Options{OnResponse: func(verb string, status int, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprint(verb, " ", status))
	}})
	discard := func(resp *http.Response, err error) {
		if err == nil {
			resp.Body.Close()
		}
	}
	ctx := t.Context()
	discard(c.Get(ctx, c.Timeouts(), kube.GetRequest{Path: "/pods", Query: url.Values{"limit": {"500"}}}))
	discard(c.Get(ctx, c.Timeouts(), kube.GetRequest{Path: "/denied"}))
	discard(c.Get(ctx, c.Timeouts(), kube.GetRequest{Path: "/secrets", WipeBuffers: true}))
	discard(c.Watch(ctx, c.Timeouts(), kube.GetRequest{Path: "/pods", Query: url.Values{"watch": {"true"}}}))
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		discard(c.Do(ctx, kube.Request{Method: method, Path: "/pods"}))
	}
	discard(c.Stream(ctx, kube.Request{Path: "/log"}))
	discard(c.Do(ctx, kube.Request{Method: http.MethodPatch, Path: "/cut"}))
	want := []string{"list 200", "get 403", "get 200", "watch 200", "create 200", "update 200", "patch 200", "delete 200", "get 200", "patch 0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
