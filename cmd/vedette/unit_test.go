package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/client"
)

func TestStaleWarning(t *testing.T) {
	lag := int64(40_400)
	for _, tt := range []struct {
		name string
		f    client.FeedFreshness
		want string
	}{
		{"fresh", client.FeedFreshness{Account: "a", State: "live"}, ""},
		{"the agent is not connected", client.FeedFreshness{Account: "prod-3", Kind: "Pod", State: "live", Stale: true, LagMs: &lag}, "prod-3: last report 40s ago"},
		{"forbidden", client.FeedFreshness{Account: "a", Kind: "Secret", State: "denied", Message: "no", Stale: true}, "a: Secret is denied (no); no report yet"},
		{"still reading, by namespace", client.FeedFreshness{Account: "a", Kind: "Pod", Namespace: "n", State: "syncing", Stale: true, LagMs: &lag}, "a: Pod in n is syncing; last report 40s ago"},
		{"not cached", client.FeedFreshness{Account: "a", Kind: "Job.batch", State: "absent"}, "a: does not cache Job.batch"},
	} {
		if got := staleWarning(tt.f); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestStaleWarningsAreLimited(t *testing.T) {
	var b bytes.Buffer
	g := &getter{errOut: &b, warned: map[string]bool{}}
	fresh := client.Freshness{Unlisted: 7}
	for i := range 1000 {
		fresh.Feeds = append(fresh.Feeds, client.FeedFreshness{Account: fmt.Sprintf("prod-%d", i), State: "live", Stale: true})
	}
	g.warnStale(fresh)
	g.warnStale(fresh) // of the next page
	if lines := strings.Split(strings.TrimSpace(b.String()), "\n"); len(lines) != 11 || !strings.HasPrefix(lines[10], "and 997 more:") {
		t.Errorf("got %d lines, want 11: %s", len(lines), b.String())
	}
}

func TestInvalidOptions(t *testing.T) {
	for args, want := range map[string]string{
		"get pods -A -n shop":                  "exclude each other",
		"get pods --chunk-size 0":              "must be between 1 and 5000",
		"get":                                  "requires at least 1 arg",
		"get pods --server :::":                "is not a URL",
		"get pods --server ftp://x":            "is not a URL",
		"get pods --server http://127.0.0.1:1": "nothing listens at http://127.0.0.1:1 (",
	} {
		_, _, err := runCLI(t.Context(), strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", args, err, want)
		}
	}
	_, _, err := runCLI(t.Context(), "get", "pods", "--server", "http://127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "start a server with `vedette up`") {
		t.Errorf("the error does not say how to start a server: %v", err)
	}
}

// TestAgentWithoutHeartbeat checks that an agent that has just connected is not shown as silent for
// centuries.
func TestAgentWithoutHeartbeat(t *testing.T) {
	now := time.Now()
	layout := newAgentLayout(now)
	row := layout.row(client.Agent{ID: "a", Connected: now.Add(-3 * time.Second)})
	if heartbeat, age := row[6], row[7]; heartbeat != "<none>" || age != "3s" {
		t.Errorf("got last heartbeat %q, age %q, want <none> and 3s", heartbeat, age)
	}
}
