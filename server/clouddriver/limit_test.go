package clouddriver_test

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
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
	readtest.AwaitFree(t, reads, freeBefore)
}

// TestListsOfClustersPayForLabels reads objects from a cluster whose labels take ten times more memory than their text.
func TestListsOfClustersPayForLabels(t *testing.T) {
	w, c := prodWorld(t)
	var labels []string
	for i := range 40_000 {
		labels = append(labels, fmt.Sprintf(`"%d":""`, i))
	}
	object := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop","annotations":{"moniker.spinnaker.io/application":"web",
		"moniker.spinnaker.io/cluster":"configMap settings"},"labels":{` + strings.Join(labels, ",") + `}}}`
	reads := readlimit.New(readlimit.Config{Wait: time.Millisecond})
	url := serve(t, clouddriver.Config{Store: w.Store, Dispatch: c, ReadLimiter: reads}) + "/manifests/prod/shop/configMap/cluster/web/configMap%20settings"
	for n, want := range map[int]int{1: http.StatusOK, 12: http.StatusServiceUnavailable} {
		c.answers["list configMap shop"] = objectsOutcome(slices.Repeat([]string{object}, n)...)
		for _, path := range []string{"", "/dynamic/newest"} {
			if response, body := get(t, url+path); response.StatusCode != want {
				t.Errorf("%d objects%s: got %d %.200s, want %d", n, path, response.StatusCode, body, want)
			}
		}
	}
	all, _ := readtest.Exhaust(readlimit.New(readlimit.Config{Wait: time.Millisecond}))
	readtest.AwaitFree(t, reads, all)
}

// TestJobsPayForTheirPods reads a Job whose pods have 32 MiB of status, with a memory of 16 MiB.
func TestJobsPayForTheirPods(t *testing.T) {
	w, c := prodWorld(t)
	const path = "/applications/web/jobs/prod/shop/job%20"
	reads := readlimit.New(readlimit.Config{Bytes: 16 << 20, Wait: time.Millisecond})
	url := serve(t, clouddriver.Config{Store: w.Store, Dispatch: c, ReadLimiter: reads})
	if response, body := get(t, url+path+"running"); response.StatusCode != http.StatusOK {
		t.Errorf("small pods: got %d %s, want 200", response.StatusCode, body)
	}
	for i := range 32 {
		w.Put("prod", jobPod(fmt.Sprint("large-", i), `{"phase":"Running","message":"`+strings.Repeat("x", 1<<20)+`"}`))
	}
	freeBefore, free := readtest.Exhaust(reads)
	free()
	for name, want := range map[string]int{
		"running":   http.StatusServiceUnavailable,
		"done/main": http.StatusOK, // without properties
	} {
		if response, body := get(t, url+path+name); response.StatusCode != want || len(body) > 4<<10 {
			t.Errorf("%s: got %d and %d bytes, want %d", name, response.StatusCode, len(body), want)
		}
	}
	readtest.AwaitFree(t, reads, freeBefore)
}

// TestManifestsPayForWhatTheyBecome reads objects that take a hundred times more memory than their text.
func TestManifestsPayForWhatTheyBecome(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", "deployments", "networkpolicies")
	object := func(kind, name, member string, n int) {
		w.Put("prod", `{"apiVersion":"`+kind+`","metadata":{"name":"`+name+`","namespace":"shop"},`+member+`[`+strings.Repeat(`{},`, n)+`{}]}}`)
	}
	object(`apps/v1","kind":"Deployment`, "some", `"status":{"conditions":`, 30_000)
	object(`apps/v1","kind":"Deployment`, "many", `"status":{"conditions":`, 1_000_000)
	object(`networking.k8s.io/v1","kind":"NetworkPolicy`, "some", `"spec":{"ingress":`, 30_000)
	object(`networking.k8s.io/v1","kind":"NetworkPolicy`, "many", `"spec":{"ingress":`, 1_000_000)
	reads := readlimit.New(readlimit.Config{Wait: time.Millisecond})
	url := serve(t, clouddriver.Config{Store: w.Store, ReadLimiter: reads})
	_, free := readtest.Exhaust(reads)
	paths := []string{"/manifests/prod/shop/deployment%20", "/securityGroups/prod/kubernetes/shop/networkPolicy%20"}
	for _, path := range paths { // small ones of 90 KB take more than the small requests have
		if response, body := get(t, url+path+"some"); response.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s without memory: got %d %.300s, want 503", path, response.StatusCode, body)
		}
	}
	free()
	for _, path := range paths {
		if response, body := get(t, url+path+"some"); response.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d %.300s, want 200", path, response.StatusCode, body)
		}
		before := allocated()
		if response, _ := get(t, url+path+"many"); response.StatusCode != http.StatusInternalServerError {
			t.Errorf("%s of a million values: got %d, want 500", path, response.StatusCode)
		}
		if taken := allocated() - before; taken > 64<<20 {
			t.Errorf("%s of a million values: %d MiB were allocated, although it becomes too much", path, taken>>20)
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
