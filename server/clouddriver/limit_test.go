package clouddriver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readlimit"
)

// TestReadersThatFindNoMemory takes all memory of readers: whoever comes then is
// told so, and served when there is some again.
func TestReadersThatFindNoMemory(t *testing.T) {
	w, c := prod(t)
	reads := readlimit.New(readlimit.Config{Bytes: 64 << 20, Wait: time.Millisecond})
	url := serve(t, clouddriver.Config{Store: w.Store, Dispatch: c, Reads: reads, Tasks: &tasks{}})
	paths := []string{"/task", "/task/" + taskID, "/manifests/prod/shop/pod%20web-0", "/manifests/prod/shop/configMap%20settings-v001", "/applications/web/jobs/prod/shop/job%20done",
		"/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web", "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web/dynamic/largest"}
	first, second := reads.TryAcquire("a", 64<<20), reads.TryAcquire("b", 64<<20)
	for _, path := range paths {
		response, body := get(t, url+path)
		if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "5" || !strings.Contains(string(body), "took all 64 MiB") {
			t.Errorf("%s: %d %s", path, response.StatusCode, body)
		}
	}
	if response, body := get(t, url+"/credentials"); response.StatusCode != http.StatusOK {
		t.Errorf("what takes little: %d %s", response.StatusCode, body)
	}
	first()
	second()
	for _, path := range paths {
		if response, body := get(t, url+path); response.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", path, response.StatusCode, body)
		}
	}
	if reads.TryAcquire("a", 64<<20) == nil || reads.TryAcquire("b", 64<<20) == nil {
		t.Error("an answer has kept memory that it does not need any more")
	}
}
