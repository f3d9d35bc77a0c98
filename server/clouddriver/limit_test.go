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

// TestReadLimitReturnsUnavailable takes all memory of readers: whoever comes then is
// told so, and served when there is some again.
func TestReadLimitReturnsUnavailable(t *testing.T) {
	w, c := prodWorld(t)
	reads := readlimit.New(readlimit.Config{Wait: time.Millisecond})
	url := serve(t, clouddriver.Config{Store: w.Store, Dispatch: c, ReadLimiter: reads, Tasks: &fakeTasks{}})
	paths := []string{"/task", "/task/" + taskID, "/manifests/prod/shop/pod%20web-0", "/manifests/prod/shop/configMap%20settings-v001", "/applications/web/jobs/prod/shop/job%20done",
		"/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web", "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web/dynamic/largest"}
	freeBefore, free := readtest.Exhaust(reads)
	for _, path := range paths {
		response, body := get(t, url+path)
		if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "5" || !strings.Contains(string(body), "have used all") {
			t.Errorf("%s: %d %s", path, response.StatusCode, body)
		}
	}
	if response, body := get(t, url+"/credentials"); response.StatusCode != http.StatusOK {
		t.Errorf("what takes little: %d %s", response.StatusCode, body)
	}
	free()
	for _, path := range paths {
		if response, body := get(t, url+path); response.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", path, response.StatusCode, body)
		}
	}
	if freeAfter, _ := readtest.Exhaust(reads); freeAfter != freeBefore {
		t.Errorf("%d bytes were free before, and %d since: an answer has kept memory", freeBefore, freeAfter)
	}
}
