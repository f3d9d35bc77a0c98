package kube_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
)

// TestHTTP1WatchesAreLimited opens more watches at once than an API server that speaks only HTTP/1.1 may
// have connections, and checks that the others go on, and that one that ends makes room.
func TestHTTP1WatchesAreLimited(t *testing.T) {
	const limit, attempts = 5, 40
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	c := kubetest.Connect(t, server, kube.Options{MaxHTTP1Watches: limit})
	watch := func() (*http.Response, error) {
		return c.Watch(t.Context(), c.Timeouts(), kube.GetRequest{Path: "/api/v1/pods", Accept: kube.AcceptJSON})
	}
	first, err := watch()
	must(t, err)

	var mu sync.Mutex
	var open []*http.Response
	var refused []error
	var all sync.WaitGroup
	for range attempts {
		all.Go(func() {
			resp, err := watch()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				refused = append(refused, err)
				return
			}
			open = append(open, resp)
		})
	}
	all.Wait()
	if len(open) != limit-1 || len(refused) != attempts-limit+1 {
		t.Errorf("got %d watches and %d errors, want %d watches beside the first one", len(open), len(refused), limit-1)
	}
	for _, err := range refused {
		if !errors.Is(err, kube.ErrTooManyWatches) || vedette.KindOf(err) != vedette.Unavailable || !strings.Contains(err.Error(), "let HTTP/2 pass") {
			t.Fatalf("got %v, want an error that says what to do", err)
		}
	}
	must(t, first.Body.Close())
	next, err := watch()
	if err != nil {
		t.Fatalf("after a watch has ended: got %v, want another one", err)
	}
	for _, resp := range append(open, next) {
		must(t, resp.Body.Close())
	}
}

// TestHTTP2WatchesAreNotLimited checks that watches that share connections have no limit.
func TestHTTP2WatchesAreNotLimited(t *testing.T) {
	server := kubetest.NewServer(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	c := kubetest.Connect(t, server, kube.Options{MaxHTTP1Watches: 5})
	for range 20 {
		resp, err := c.Watch(t.Context(), c.Timeouts(), kube.GetRequest{Path: "/api/v1/pods", Accept: kube.AcceptJSON})
		must(t, err)
		t.Cleanup(func() { resp.Body.Close() })
	}
}
