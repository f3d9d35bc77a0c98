package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/exit"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/authorize"
)

// TestCanINamesWhoRefuses checks that can-i answers for the cluster and for the server in a column each, and that REASON names
// the one that does not allow the action, or both.
func TestCanINamesWhoRefuses(t *testing.T) {
	w := newShopWorld(t)
	authority, err := authorize.New(authorize.Config{Properties: func(_ context.Context, account vedette.AccountName) (vedette.Properties, error) {
		if account == "dev" {
			return vedette.Properties{}, nil
		}
		return vedette.Properties{Permissions: &vedette.Permissions{Write: []string{"ops"}}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.New(api.Config{Store: w.Store, Hub: w.Hub, Fleet: w.Fleet, Dispatch: newSampleClusters(), Authorizer: authority}))
	t.Cleanup(server.Close)
	for _, tt := range []struct{ command, want string }{
		{"create deployments --account dev", "ACCOUNT CLUSTER SERVER REASON dev yes yes"},
		{"create deployments --account dev,prod-1", "ACCOUNT CLUSTER SERVER REASON dev yes yes " +
			"prod-1 yes no the server: the account needs WRITE, which your user does not have"},
		{"get pods --account prod-1", "ACCOUNT CLUSTER SERVER REASON prod-1 yes yes"},
		{"get nodes --account dev", "ACCOUNT CLUSTER SERVER REASON dev no yes the cluster: RBAC: no rule"},
		{"delete nodes --account prod-1 --no-headers", "prod-1 no no the server: the account needs WRITE, which your user does not have; the cluster: RBAC: no rule"},
		{"delete nodes --account prod-1 -q", ""},
		{"--list --account dev", "Resources Non-Resource URLs Resource Names Verbs [/healthz] [] [get] deployments [] [] [get list] " +
			"deployments.apps [] [] [get list] pods [] [a b] [*]"},
	} {
		out, errOut, err := runCLI(t.Context(), append(strings.Fields("auth can-i "+tt.command), "--server", server.URL)...)
		refused := strings.Contains(tt.command, "nodes") || strings.Contains(tt.want, " no ")
		var exitErr exit.Error
		if got := strings.Join(strings.Fields(out), " "); got != tt.want || errors.As(err, &exitErr) != refused || err != nil && exitErr.Code != 1 {
			t.Errorf("%s: got %q, %q, %v, want %q", tt.command, got, errOut, err, tt.want)
		}
		if strings.Contains(tt.command, "--list") != strings.Contains(errOut, "the list may be incomplete: webhook") {
			t.Errorf("%s: got %q", tt.command, errOut)
		}
	}
	for _, command := range []string{"get", "get pods extra", "--list pods", "get /x -n shop", "get pods -n a -A", "--list -q"} {
		if _, _, err := runCLI(t.Context(), append(strings.Fields("auth can-i "+command), "--account", "dev", "--server", server.URL)...); err == nil {
			t.Errorf("%s: got no error", command)
		}
	}
}
