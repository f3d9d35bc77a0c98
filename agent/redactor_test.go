package agent

import (
	"log/slog"
	"testing"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/uplink"
)

// TestAccountsShareRedactor checks that accounts share a redactor as long as the server wants the same
// of them, and that a projection that this agent does not support costs only itself.
func TestAccountsShareRedactor(t *testing.T) {
	a := New(Config{Uplink: uplink.Config{Target: "passthrough:///127.0.0.1:1", Creds: insecure.NewCredentials(), Agent: "a"}},
		slog.New(slog.DiscardHandler))
	pods := vedette.Projection{Kind: vedette.Kind{Name: "Pod"}, Fields: []vedette.ProjectionField{{Name: "phase", Path: "status.phase"}}}
	settings := func(projections ...vedette.Projection) uplink.ServerSettings {
		return uplink.ServerSettings{Projections: projections, Annotations: []string{"a"}}
	}
	first, err := a.redactorFor(settings(pods))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.redactorFor(settings(pods)); again != first || err != nil {
		t.Errorf("the same settings: got another redactor, %v", err)
	}
	if other, err := a.redactorFor(settings()); other == first || err != nil {
		t.Errorf("other settings: got the same redactor, %v", err)
	}
	unknown := vedette.Projection{Kind: vedette.Kind{Name: "Job"}, Fields: []vedette.ProjectionField{{Name: "x", Path: ""}}}
	if _, err := a.redactorFor(settings(pods, unknown)); err != nil {
		t.Errorf("a projection of a newer server: got %v", err)
	}
	if _, err := a.redactorFor(settings(pods, pods)); err != nil {
		t.Errorf("two projections of a kind: got %v", err)
	}
}
