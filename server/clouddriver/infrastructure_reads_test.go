package clouddriver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/server/store"
)

// searchReads counts reads of the search, too.
type searchReads struct{ *viewReads }

func (s searchReads) Search(ctx context.Context, q store.SearchQuery) ([]store.SearchRow, error) {
	s.reads.Add(1)
	return s.Store.Search(ctx, q)
}

func (s searchReads) CountSearch(ctx context.Context, q store.SearchQuery) (int64, error) {
	s.reads.Add(1)
	return s.Store.CountSearch(ctx, q)
}

func (s searchReads) Inventory(ctx context.Context) (*store.Inventory, error) {
	s.reads.Add(1)
	return s.Store.Inventory(ctx)
}

func (s searchReads) Object(ctx context.Context, account vedette.AccountName, key vedette.Key) (store.Row, error) {
	s.reads.Add(1)
	return s.Store.Object(ctx, account, key)
}

// TestReadsOfInfrastructure checks that the number of reads does not depend on how much is shown.
// Each read takes a constant number of statements, as a test of the store checks.
func TestReadsOfInfrastructure(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", viewKinds()...)
	putApplication(w, "small", 1, 1)
	putApplication(w, "large", 50, 3)
	for app, n := range map[string]int{"small": 1, "large": 100} {
		for i := range n {
			w.Put("prod", fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"%s-%d","namespace":"s"},"spec":{}}`, app, i),
				fmt.Sprintf(`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"%s-%d","namespace":"s"}}`, app, i))
		}
	}
	for path, want := range map[string]int64{
		"/applications/APP/loadBalancers": 6, "/applications/APP/rawResources": 5, "/kubernetes/loadBalancers/prod/s/service%20APP-0": 7,
		"/kubernetes/loadBalancers/service%20APP-0": 3, "/securityGroups": 3, "/securityGroups/prod": 3, "/securityGroups/prod/kubernetes?region=s": 3,
		"/securityGroups/prod/kubernetes/networkPolicy%20APP-0": 3, "/securityGroups/prod/kubernetes/s/networkPolicy%20APP-0": 3,
		"/search?q=APP&type=applications,clusters,serverGroups,instances,loadBalancers": 4, "/search?q=APP&type=loadBalancers&pageSize=1000&page=2": 6,
	} {
		for _, app := range []string{"small", "large"} {
			s := searchReads{&viewReads{Store: w.Store}}
			server := serve(t, clouddriver.Config{Store: s})
			response, body := get(t, server+strings.ReplaceAll(path, "APP", app))
			if response.StatusCode != http.StatusOK || s.reads.Load() != want {
				t.Errorf("%s of %s: got %d with %d reads, want 200 with %d: %.200s", path, app, response.StatusCode, s.reads.Load(), want, body)
			}
			again, _ := get(t, server+strings.ReplaceAll(path, "APP", app), "If-None-Match", response.Header.Get("ETag"))
			if again.StatusCode != http.StatusNotModified {
				t.Errorf("%s of %s, again: got %d, want 304", path, app, again.StatusCode)
			}
		}
	}
}
