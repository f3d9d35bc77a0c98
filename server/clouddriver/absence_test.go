package clouddriver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

// TestAbsenceIsCertain checks that a stage never learns that something does not exist from an
// account whose data may be incomplete, and that views do.
func TestAbsenceIsCertain(t *testing.T) {
	jobs := vedette.Kind{Group: "batch", Name: "Job"}
	for _, tt := range []struct {
		name    string
		prepare func(w *readtest.Fixture)
		path    string
		status  int
		text    string
	}{
		{"all accounts are live", func(*readtest.Fixture) {}, "/applications/gone", 404, "Application does not exist (name: gone)"},
		{"an agent is away", func(w *readtest.Fixture) { w.Fleet.Disconnect("dev") }, "/applications/gone", 503, "no agent is connected (account: dev)"},
		{"an agent is away, but what is asked for is known", func(w *readtest.Fixture) { w.Fleet.Disconnect("dev") }, "/applications/web", 200, ""},
		{"a kind is being listed", func(w *readtest.Fixture) { w.SetFeedState("dev", jobs, vedette.FeedSyncing, "") }, "/applications/gone", 503, "does not watch Job now (account: dev)"},
		{"the API server does not answer", func(w *readtest.Fixture) { w.SetFeedState("dev", jobs, vedette.FeedFailing, "timeout") }, "/applications/gone", 503, "does not watch Job"},
		{"a kind is denied, and stays so", func(w *readtest.Fixture) { w.SetFeedState("dev", jobs, vedette.FeedDenied, "forbidden") }, "/applications/gone", 404, "does not exist"},
		{"a kind that is no server group is being listed", func(w *readtest.Fixture) {
			w.SetFeedState("dev", vedette.Kind{Name: "Service"}, vedette.FeedSyncing, "")
		}, "/applications/gone", 404, "does not exist"},
		{"an account has reported nothing yet", func(w *readtest.Fixture) { w.Account("new") }, "/applications/gone", 503, "has not reported yet"},
		{"another account's agent is away", func(w *readtest.Fixture) { w.Fleet.Disconnect("dev") }, "/applications/web/clusters/prod/nothing/kubernetes", 404, "No clusters found"},
		{"the account's agent is away: cluster", func(w *readtest.Fixture) { w.Fleet.Disconnect("dev") }, "/applications/web/clusters/dev/nothing/kubernetes", 503, "no agent"},
		{"the account's agent is away: clusters", func(w *readtest.Fixture) { w.Fleet.Disconnect("dev") }, "/applications/gone/clusters/dev", 503, "no agent"},
		{"the account's agent is away: server group", func(w *readtest.Fixture) { w.Fleet.Disconnect("dev") }, "/serverGroups/dev/shop/job%20x", 503, "no agent"},
		{"the account's agent is away: instance", func(w *readtest.Fixture) { w.Fleet.Disconnect("dev") }, "/instances/dev/shop/pod%20x", 503, "no agent"},
		{"the account's agent is away: target", func(w *readtest.Fixture) { w.Fleet.Disconnect("prod") }, "/applications/web/clusters/prod/web/kubernetes/other/serverGroups/target/newest", 503, "no agent"},
		{"an unknown account", func(*readtest.Fixture) {}, "/serverGroups/nowhere/shop/job%20x", 404, "not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := readtest.New(t)
			w.Account("prod", viewKinds()...)
			w.Account("dev", viewKinds()...)
			w.Put("prod", readtest.Deployment("shop", "web", 1))
			tt.prepare(w)
			url := serve(t, clouddriver.Config{Store: w.Store, Connected: func(a vedette.AccountName) bool { _, live := w.Fleet.Freshness(a); return live }}) + tt.path
			response, body := get(t, url, "X-SPINNAKER-EXECUTION-ID", "01J")
			if response.StatusCode != tt.status || !strings.Contains(string(body), tt.text) {
				t.Errorf("a stage: got %d %s, want %d with %q", response.StatusCode, body, tt.status, tt.text)
			}
			want := tt.status
			if want == http.StatusServiceUnavailable {
				want = http.StatusNotFound
			}
			if response, body := get(t, url); response.StatusCode != want {
				t.Errorf("a view: got %d %s, want %d", response.StatusCode, body, want)
			}
		})
	}
}
