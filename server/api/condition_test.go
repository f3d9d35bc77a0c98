package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
)

// TestConditionsOfAccounts checks that the conditions of an account are those that its cacher reports, and that its message
// says which do not hold, while the status stays Ready.
func TestConditionsOfAccounts(t *testing.T) {
	world := shopWorld(t)
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	broken := vedette.Condition{Type: vedette.CredentialsCurrent, Reason: "Rejected", Message: "the changed credentials cannot be used", Since: since}
	good := vedette.Condition{Type: vedette.CredentialsCurrent, Holds: true, Reason: "InUse", Message: "fine", Since: since}
	account := func(role api.Role, conditions ...vedette.Condition) []api.AgentAccount {
		return []api.AgentAccount{{Name: "prod-1", Role: role, Conditions: conditions}}
	}
	world.Fleet.SetAgents(api.Agent{ID: "a1", Accounts: account(api.Cacher, broken)}, api.Agent{ID: "a2", Accounts: account(api.Standby, good)})
	get := func() (status, message string, conditions []map[string]string) {
		a := getJSON[struct {
			Status, Message string
			Conditions      []map[string]string
		}](serve(t, configOf(world)), "/accounts/prod-1")
		return a.Status, a.Message, a.Conditions
	}
	status, message, conditions := get()
	if status != "Ready" || message != broken.Message || len(conditions) != 1 {
		t.Fatalf("got status %s, message %q, conditions %v", status, message, conditions)
	}
	for key, want := range map[string]string{"type": "CredentialsCurrent", "status": "False", "reason": "Rejected", "message": broken.Message,
		"since": "2026-01-02T03:04:05.000Z", "lastTransitionTime": "2026-01-02T03:04:05.000Z"} {
		if conditions[0][key] != want {
			t.Errorf("%s: got %q, want %q", key, conditions[0][key], want)
		}
	}
	world.Fleet.SetAgents(api.Agent{ID: "a2", Accounts: account(api.Cacher, good)})
	if status, message, conditions := get(); status != "Ready" || strings.Contains(message, "fine") || len(conditions) != 1 || conditions[0]["status"] != "True" {
		t.Errorf("after it is solved: got status %s, message %q, conditions %v", status, message, conditions)
	}
}
