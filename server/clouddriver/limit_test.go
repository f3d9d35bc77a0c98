package clouddriver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/readtest"
)

// TestReadLimitReturnsUnavailable takes all memory of the read limiter: requests then fail
// with 503, and succeed after memory was released.
func TestReadLimitReturnsUnavailable(t *testing.T) {
	w, c := prodWorld(t)
	reads := readlimit.New(readlimit.Config{Wait: time.Millisecond})
	url := serve(t, clouddriver.Config{Store: w.Store, Dispatch: c, ReadLimiter: reads, Tasks: &fakeTasks{}})
	paths := []string{"/task", "/task/" + taskID, "/manifests/prod/shop/pod%20web-0", "/manifests/prod/shop/configMap%20settings-v001", "/applications/web/jobs/prod/shop/job%20done",
		"/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web", "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web/dynamic/largest",
		"/applications", "/applications/web", "/applications/web/clusters", "/applications/web/clusters/prod", "/applications/web/clusters/prod/replicaSet%20web",
		"/applications/web/serverGroups", "/applications/web/serverGroupManagers", "/serverGroups?applications=web", "/serverGroups/prod/shop/replicaSet%20web-v001",
		"/instances/prod/shop/pod%20web-0"}
	freeBefore, free := readtest.Exhaust(reads)
	for _, path := range paths {
		response, body := get(t, url+path)
		if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "5" || !strings.Contains(string(body), "have used all") {
			t.Errorf("%s: got %d %s, want %d and %q", path, response.StatusCode, body, http.StatusServiceUnavailable, "have used all")
		}
	}
	if response, body := get(t, url+"/credentials"); response.StatusCode != http.StatusOK {
		t.Errorf("a request that needs no memory: got %d %s, want %d", response.StatusCode, body, http.StatusOK)
	}
	free()
	for _, path := range paths {
		if response, body := get(t, url+path); response.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d %s, want %d", path, response.StatusCode, body, http.StatusOK)
		}
	}
	if freeAfter, _ := readtest.Exhaust(reads); freeAfter != freeBefore {
		t.Errorf("free memory: got %d bytes, want %d as before the requests", freeAfter, freeBefore)
	}
}
