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
	"github.com/vedette-io/vedette/server/store/read"
)

// searchReads counts reads of the search, too.
type searchReads struct{ *viewReads }

func (s searchReads) Search(ctx context.Context, q read.SearchQuery) ([]read.SearchRow, error) {
	s.reads.Add(1)
	return s.Store.Search(ctx, q)
}

func (s searchReads) CountSearch(ctx context.Context, q read.SearchQuery) (int64, error) {
	s.reads.Add(1)
	return s.Store.CountSearch(ctx, q)
}

func (s searchReads) Inventory(ctx context.Context) (*read.Inventory, error) {
	s.reads.Add(1)
	return s.Store.Inventory(ctx)
}

func (s searchReads) Object(ctx context.Context, account vedette.AccountName, key vedette.Key) (read.Row, error) {
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

// TestReadsOfNamedServerGroups checks that the number of reads does not depend on how many server
// groups are named, in how many accounts and namespaces they are, and whether they exist.
func TestReadsOfNamedServerGroups(t *testing.T) {
	w := readtest.New(t)
	for _, account := range []vedette.AccountName{"one", "two"} {
		w.Account(account, viewKinds()...)
		for i := range 20 {
			w.Put(account, fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"db","namespace":"n%d","uid":"set-%d"},`+
				`"spec":{"template":{"metadata":{"labels":{"app":"db"}}}}}`, i, i),
				fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"db","namespace":"n%d"},"spec":{"selector":{"app":"db"}}}`, i))
		}
	}
	s := &viewReads{Store: w.Store}
	server := serve(t, clouddriver.Config{Store: s})
	get(t, server+"/serverGroups?ids=one:n0:replicaSet%20db") // reads the accounts, too
	var reads int64
	for _, n := range []int{1, 20} {
		var ids []string
		for i := range n {
			ids = append(ids, fmt.Sprintf("one:n%d:replicaSet%%20db", i), fmt.Sprintf("two:n%d:replicaSet%%20db", i), fmt.Sprintf("two:n%d:job%%20none", i),
				fmt.Sprintf("none:n%d:replicaSet%%20db", i), fmt.Sprintf("one:n%d:unknown%%20db", i))
		}
		before := s.reads.Load()
		response, body := get(t, server+"/serverGroups?ids="+strings.Join(ids, "&ids="))
		if n := strings.Count(string(body), `"loadBalancers":["service db"]`); response.StatusCode != http.StatusOK || n != len(ids)/5*2 {
			t.Errorf("got %d with %d server groups behind a Service, want 200 with %d: %.500s", response.StatusCode, n, len(ids)/5*2, body)
		}
		if n == 1 {
			reads = s.reads.Load() - before
		}
		if got := s.reads.Load() - before; got != reads || got > 5 {
			t.Errorf("%d server groups: got %d reads, want the same few as for one: %d", len(ids), got, reads)
		}
	}
}
