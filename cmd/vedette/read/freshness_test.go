package read

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
)

func TestWarningSaysWhyDataIsStale(t *testing.T) {
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
		{"not cached", client.FeedFreshness{Account: "a", Kind: "Job.batch", State: "absent"}, ""},
	} {
		if got := staleWarning(tt.f); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestStaleWarningsAreLimited(t *testing.T) {
	var b bytes.Buffer
	g := &getter{errOut: &b, notices: output.Notices{Out: &b}}
	fresh := client.Freshness{Unlisted: 7}
	for i := range 1000 {
		fresh.Feeds = append(fresh.Feeds, client.FeedFreshness{Account: fmt.Sprintf("prod-%d", i), State: "live", Stale: true})
	}
	g.warnStale(fresh)
	g.warnStale(fresh) // of the next page
	g.notices.Flush(noticesHint)
	if lines := strings.Split(strings.TrimSpace(b.String()), "\n"); len(lines) != 11 || !strings.HasPrefix(lines[10], "and 997 more:") {
		t.Errorf("got %d lines, want 11: %s", len(lines), b.String())
	}
}
