package clouddriver_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

const storedSecret = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"keys","namespace":"shop","creationTimestamp":"2026-11-20T12:00:00Z"},"type":"Opaque"}`

// staleWorld returns three accounts with the same objects: of prod the feeds are live, away has no agent, and the agent of frozen
// does not answer and has not listed anything yet.
func staleWorld(t *testing.T) (*readtest.Fixture, *fakeCluster, http.Handler) {
	w := readtest.New(t)
	for _, account := range []vedette.AccountName{"prod", "away", "frozen"} {
		w.Account(account, "pods", "jobs", "secrets")
		w.Put(account, web0, storedSecret)
	}
	for _, kind := range []vedette.Kind{{Name: "Pod"}, {Name: "Secret"}, {Group: "batch", Name: "Job"}} {
		w.SetFeedState("frozen", kind, vedette.FeedSyncing, "")
	}
	w.Fleet.Disconnect("away")
	answers := map[string]vedette.Outcome{}
	for _, question := range []string{"get pod shop/web-0", "get pod shop/nope", "get secret shop/keys", "get service shop/web", "list pod shop",
		"get job.batch shop/migrate", "logs shop/web-0/web"} {
		answers[question] = hangingOutcome
	}
	c := &fakeCluster{answers: answers}
	return w, c, clouddriver.New(clouddriver.Config{Store: w.Store, Dispatch: c,
		Connected: func(a vedette.AccountName) bool { _, live := w.Fleet.Freshness(a); return live }})
}

// TestReadsWithoutAgent checks that nobody waits for an agent that is gone, and a limited time for one that does not answer;
// and that objects are then shown with their age, while stages get an error after which Orca tries again.
func TestReadsWithoutAgent(t *testing.T) {
	const stage = "X-SPINNAKER-EXECUTION-ID"
	for _, tt := range []struct {
		name, method, path, header string
		status                     int
		want                       string
		isStale                    bool
	}{
		{"a stored object is shown", "GET", "/manifests/ACCOUNT/shop/pod%20web-0", "", 200, `"name":"pod web-0"`, true},
		{"without events too", "GET", "/manifests/ACCOUNT/shop/pod%20web-0?includeEvents=false", "", 200, `"name":"pod web-0"`, true},
		{"a stage waits, because what is stored may be of an earlier generation", "GET", "/manifests/ACCOUNT/shop/pod%20web-0?includeEvents=false", stage, 503,
			"Failed to read manifest: (account: ACCOUNT, location: shop, name: pod web-0): ", false},
		{"an object that is not stored may exist", "GET", "/manifests/ACCOUNT/shop/pod%20nope", "", 503, "Failed to read manifest", false},
		{"a kind that is not cached", "GET", "/manifests/ACCOUNT/shop/service%20web", "", 503, "Failed to read manifest", false},
		{"the manifests of a cluster", "GET", "/manifests/ACCOUNT/shop/pod/cluster/web/pod%20web", "", 503, "Failed to read (account: ACCOUNT", false},
		{"the target of a stage", "GET", "/manifests/ACCOUNT/shop/pod/cluster/web/pod%20web/dynamic/newest", stage, 503, "Failed to read (account: ACCOUNT", false},
		{"a Job that a stage waits for", "GET", "/applications/web/jobs/ACCOUNT/shop/job%20migrate", stage, 503, "Failed to read manifest", false},
		{"a Job to cancel", "DELETE", "/applications/web/jobs/ACCOUNT/shop/job%20migrate", stage, 503, "Failed to read manifest", false},
		{"the properties of a Job", "GET", "/applications/web/jobs/ACCOUNT/shop/job%20migrate/main", stage, 200, "{}", false},
		{"a console", "GET", "/instances/ACCOUNT/shop/pod%20web-0/console?provider=kubernetes", "", 200, "Failed to retrieve pod data: ", false},
	} {
		for account, wait := range map[string]time.Duration{"away": 0, "frozen": 10 * time.Second} {
			t.Run(tt.name+" "+account, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					_, c, handler := staleWorld(t)
					time.Sleep(42 * time.Second)
					recorder := httptest.NewRecorder()
					r := httptest.NewRequestWithContext(t.Context(), tt.method, strings.ReplaceAll(tt.path, "ACCOUNT", account), nil)
					if tt.header != "" {
						r.Header.Set(tt.header, "01EXECUTION")
					}
					start := time.Now()
					handler.ServeHTTP(recorder, r)
					if took := time.Since(start); took != wait {
						t.Errorf("got an answer after %v, want %v", took, wait)
					}
					if want := strings.ReplaceAll(tt.want, "ACCOUNT", account); recorder.Code != tt.status || !strings.Contains(recorder.Body.String(), want) {
						t.Errorf("got %d %s, want %d and %q", recorder.Code, recorder.Body, tt.status, want)
					}
					checkStaleHeaders(t, recorder.Header(), tt.isStale, 42*time.Second+wait)
					if retry := recorder.Header().Get("Retry-After"); (retry != "") != (tt.status == 503) {
						t.Errorf("got Retry-After %q with status %d", retry, tt.status)
					}
					if requests := c.requests(); account == "away" && len(requests) > 0 {
						t.Errorf("got requests to the cluster %q, want none", requests)
					}
				})
			})
		}
	}
}

func checkStaleHeaders(t *testing.T, h http.Header, isStale bool, age time.Duration) {
	t.Helper()
	got := map[string]string{}
	for _, name := range []string{"Vedette-Stale", "Vedette-Watermark", "Age"} {
		if value := h.Get(name); value != "" {
			got[name] = value
		}
	}
	want := map[string]string{}
	if isStale {
		const layout = "2006-01-02T15:04:05.000Z"
		want = map[string]string{"Vedette-Stale": "true", "Age": strconv.Itoa(int(age.Seconds())), "Vedette-Watermark": time.Now().Add(-age).UTC().Format(layout)}
		// The accounts came one after the other, and those that come soon after another wait for more.
		const setupTime = 200 * time.Millisecond
		if at, err := time.Parse(layout, got["Vedette-Watermark"]); err == nil && at.Before(time.Now().Add(-age)) && at.After(time.Now().Add(-age-setupTime)) {
			want["Vedette-Watermark"] = got["Vedette-Watermark"]
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got headers %v, want %v", got, want)
	}
}

// TestLogsWithoutAgent checks that a log that is read without its pod does not wait either.
func TestLogsWithoutAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, handler := staleWorld(t)
		recorder, start := httptest.NewRecorder(), time.Now()
		handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/applications/web/kubernetes/pods/away/shop/web-0/web", nil))
		if took := time.Since(start); recorder.Code != http.StatusOK || strings.TrimSpace(recorder.Body.String()) != "{}" || took != 0 || len(c.requests()) > 0 {
			t.Errorf("got %d %s after %v and requests %q, want no properties at once", recorder.Code, recorder.Body, took, c.requests())
		}
	})
}

// TestStaleObjectsHaveTheSameForm checks that an object looks the same whether or not it is stale.
func TestStaleObjectsHaveTheSameForm(t *testing.T) {
	_, _, handler := staleWorld(t)
	for _, name := range []string{"pod%20web-0", "secret%20keys"} {
		var bodies []string
		for _, account := range []string{"prod", "away"} {
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/manifests/"+account+"/shop/"+name+"?includeEvents=false", nil))
			if recorder.Code != http.StatusOK {
				t.Fatalf("%s of %s: got %d %s, want %d", name, account, recorder.Code, recorder.Body, http.StatusOK)
			}
			bodies = append(bodies, strings.ReplaceAll(recorder.Body.String(), `"account":"`+account+`"`, ""))
		}
		if len(slices.Compact(bodies)) != 1 {
			t.Errorf("%s: got %s for a stale object, want %s", name, bodies[1], bodies[0])
		}
	}
}
