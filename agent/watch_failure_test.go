package agent

import (
	"log/slog"
	"testing"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/uplink"
)

// TestAssignmentWhileWatchesCannotBegin assigns an account again before the failure to watch it was handled.
func TestAssignmentWhileWatchesCannotBegin(t *testing.T) {
	a := New(Config{Uplink: uplink.Config{Target: "passthrough:///127.0.0.1:1", Creds: insecure.NewCredentials(), Agent: "a"},
		Redact:   redact.Config{Preset: "unknown"},
		Accounts: []Account{{Name: "prod"}}}, slog.New(slog.DiscardHandler))
	prod := a.accounts.get("prod")
	pods := vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}
	var run *watchRun
	for term, mark := range []vedette.Mark{"10", "20", "30"} {
		as := uplink.Assignment{Account: "prod", Term: vedette.Term(term + 1), Marks: map[vedette.Feed]vedette.Mark{pods: mark}}
		a.box.Recall("prod", as.Term)
		var isCurrent bool
		if run, isCurrent = prod.ensureWatching(t.Context(), nil, run, as); !isCurrent || run == nil {
			t.Fatalf("term %d: got %v, %v", as.Term, run, isCurrent)
		}
		select {
		case <-run.ended():
		default:
			t.Fatalf("term %d: the watch has not ended", as.Term)
		}
		if run.err == nil {
			t.Errorf("term %d: got no error", as.Term)
		}
	}
}
