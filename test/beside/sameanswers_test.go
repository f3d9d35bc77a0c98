package beside

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/compare"
)

// TestSameAnswers compares what a server before a real Clouddriver answers with what that Clouddriver answers itself: when
// nothing has moved, when one of two accounts has moved, and when both have.
func TestSameAnswers(t *testing.T) {
	if *clouddriverArguments == "" {
		t.Skip("it needs a real Clouddriver: make verify-beside")
	}
	t.Parallel()
	clusters := startClusters(t, east, west)
	c := startClouddriver(t, clusters)
	in := newInstallation(t, settings{upstream: c.URL(), grace: time.Hour})
	logVersions(t, in, clusters[west])
	compareAnswers(t, c, in, "nothing has moved")
	for _, account := range []string{west, east} {
		in.newAgent(account, clusters[account].Kubeconfig()).Start()
		await(t, 2*time.Minute, account+" is synchronized", func(ctx context.Context) error { return in.checkSynchronized(ctx, account) })
		await(t, time.Minute, account+" is answered by agents", func(ctx context.Context) error { return in.checkOwner(ctx, account, agents) })
		compareAnswers(t, c, in, account+" has moved")
	}
}

// environmentRule accepts the one difference that the test makes, to see who answers for an account.
var environmentRule = compare.Rule{Form: "/credentials*", Field: "*environment", Reason: "the test gives accounts of both sides different environments"}

// pathsPerForm is how many requests of one form are sent.
const pathsPerForm = 12

// compareAnswers compares the answers to everything that Spinnaker's services may ask.
func compareAnswers(t *testing.T, c *realClouddriver, in *installation, when string) {
	t.Helper()
	accepted, err := compare.AcceptedRules()
	if err != nil {
		t.Fatal(err)
	}
	rules := append(compare.Rules{environmentRule}, accepted...)
	header := http.Header{"X-Spinnaker-User": {"orca"}}
	original, err := compare.NewServer("clouddriver", c.URL(), header)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := compare.NewServer("vedette", in.url, header)
	if err != nil {
		t.Fatal(err)
	}
	inventory, err := compare.Discover(t.Context(), original, ours, compare.Scope{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	paths, _ := inventory.Paths(pathsPerForm)
	options := compare.Options{Rules: rules, Parallel: 2, HiddenAccounts: inventory.Others, ShowValues: true}
	report, err := compare.Run(t.Context(), original, ours, paths, options)
	if err == nil && !report.OK() {
		// Clouddriver sees a change up to 40 seconds later.
		report, err = compare.Recheck(t.Context(), original, ours, report, 40*time.Second, options)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d answers: %d equal, %d with accepted differences, %d different, %d failed", when, report.Total, report.Equal, report.Accepted,
		report.Different, report.Failed)
	if !report.OK() {
		var text strings.Builder
		if err := report.Print(&text, true); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s: answers of Clouddriver and of the server before it differ:\n%s", when, text.String())
	}
}
