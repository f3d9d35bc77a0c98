package agent

import (
	"log/slog"
	"testing"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
)

// TestClusterErrorsPrecedeConfigurationErrors checks which of an account's errors counts: what the watcher found survives a
// new assignment, the cluster matters more than the configuration, and a standby has no error.
func TestClusterErrorsPrecedeConfigurationErrors(t *testing.T) {
	a := New(Config{Uplink: uplink.Config{Target: "passthrough:///127.0.0.1:1", Creds: insecure.NewCredentials(), Agent: "a"},
		Accounts: []Account{{Name: "prod"}}}, slog.New(slog.DiscardHandler)).accounts.get("prod")
	expect := func(step, message string, kind vedette.ErrorKind) {
		t.Helper()
		a.mu.Lock()
		err := a.errorLocked()
		a.mu.Unlock()
		if got := a.status().Error; got != message || vedette.KindOf(err) != kind {
			t.Errorf("%s: got %q of kind %q, want %q of kind %q", step, got, vedette.KindOf(err), message, kind)
		}
	}
	a.setState("reaching", vedette.Errorf(vedette.Invalid, "no such context"))
	expect("the kubeconfig is wrong", "no such context", vedette.Invalid)
	a.setState("reporting", nil)
	expect("it reports", "", "")
	a.setSelectionError(selectionError("no kind Podd"))
	a.setState("reporting", nil) // a new assignment
	expect("a kind is misspelt", "no kind Podd", vedette.Invalid)
	a.setClusterError(clusterError(&watch.Event{State: vedette.FeedDenied, Message: "rejected"}))
	expect("discovery is denied", "rejected", vedette.Denied)
	a.setClusterError(clusterError(&watch.Event{State: vedette.FeedFailing, Message: "stalled"}))
	expect("a feed stalls", "stalled", vedette.Unavailable)
	a.setClusterError(clusterError(&watch.Event{State: vedette.FeedLive}))
	expect("it continues", "no kind Podd", vedette.Invalid)
	a.setWaitReason("waits")
	expect("it also waits for others", "no kind Podd", vedette.Invalid)
	a.setState("standby", nil)
	expect("another agent takes over", "", "")
	a.setState("reporting", nil)
	a.setSelectionError(nil)
	expect("only the wait is left", "waits", vedette.Waiting)
	if a.load().err != nil {
		t.Error("an account that waits counts as one with an error")
	}
	a.setClusterError(clusterError(&watch.Event{State: vedette.FeedFailing, Message: "stalled"}))
	if a.load().err == nil {
		t.Error("an account whose cluster cannot be read does not count as one with an error")
	}
	a.setClusterError(nil)
	a.setWaitReason("")
	expect("a new watcher starts", "", "")
}
