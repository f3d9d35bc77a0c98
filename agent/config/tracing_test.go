package config

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/admin"
	"github.com/vedette-io/vedette/internal/tracing/otlp"
)

// TestTracingSettingsAreConverted checks the conversion of the settings, and which are rejected.
func TestTracingSettingsAreConverted(t *testing.T) {
	for text, want := range map[string]otlp.Config{
		"agentId: a1": {Endpoint: "localhost:4317"},
		"{agentId: a1, tracing: {enabled: true, endpoint: 'c:1', insecure: true}}": {Endpoint: "c:1", Insecure: true},
	} {
		c, err := parse("agent.yml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := c.TraceExport()
		want.Service, want.Instance, want.Version = "vedette-agent", "a1", got.Version
		if got != want {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
	if _, err := parse("agent.yml", []byte("tracing.endpoint: collector"), nil); err == nil || !strings.Contains(err.Error(), "tracing.endpoint") {
		t.Errorf("got %v, want an error about the endpoint", err)
	}
}

// TestAdminTokenIsNeverPrinted checks that the token is used, and never printed.
func TestAdminTokenIsNeverPrinted(t *testing.T) {
	const token = "a-token-of-20-letters"
	c, err := parse("agent.yml", []byte("server.adminToken: "+token), nil)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	if got := c.Server.Guard(log); got != (admin.Guard{Token: token, Log: log}) {
		t.Errorf("got another guard than one with the token")
	}
	if printed := fmt.Sprintf("%v %+v %#v %v", c, c, c, c.Effective()); strings.Contains(printed, token) {
		t.Errorf("the token is printed: %s", printed)
	}
	for _, invalid := range []string{"server.adminToken: short", "{server.adminToken: " + token + ", server.adminTokenFile: /t}"} {
		if _, err := parse("agent.yml", []byte(invalid), nil); err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("%s: got %v, want an error without the token", invalid, err)
		}
	}
}
