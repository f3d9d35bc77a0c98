package config

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/tracing/otlp"
)

// TestTracingSettingsAreConverted checks the conversion of the settings, and which are rejected.
func TestTracingSettingsAreConverted(t *testing.T) {
	for text, want := range map[string]otlp.Config{
		"": {Endpoint: "localhost:4317", SampleRatio: 1},
		"tracing: {enabled: true, endpoint: 'c:1', insecure: true, sampleRatio: 0.25}": {Endpoint: "c:1", Insecure: true, SampleRatio: 0.25},
	} {
		c, err := parseText(text)
		if err != nil {
			t.Fatal(err)
		}
		got := c.TraceExport("s1")
		want.Service, want.Instance, want.Version = "vedette-server", "s1", got.Version
		if got != want || c.Tracing.Enabled != (text != "") {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"{endpoint: collector}": "tracing.endpoint", "{endpoint: ':4317'}": "tracing.endpoint", "{sampleRatio: 1.5}": "tracing.sampleRatio",
		"{sampleRatio: -0.1}": "tracing.sampleRatio", "{sampleRatio: .nan}": "tracing.sampleRatio",
	} {
		if _, err := parseText("tracing: " + text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error about %s", text, err, want)
		}
	}
}

// TestProfilesUseTheAdminToken checks where profiles are served, and which tokens are rejected.
func TestProfilesUseTheAdminToken(t *testing.T) {
	c, err := parseText("{server.address: 10.1.2.3, server.adminToken: a-token-of-20-letters, pprof: {enabled: true, port: 7070}}")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Profiles(nil, slog.New(slog.DiscardHandler)); got.Host != "10.1.2.3" || got.Port != 7070 || got.Guard.Token != "a-token-of-20-letters" {
		t.Errorf("got %+v", got)
	}
	for _, invalid := range []string{"server.adminToken: short", "{server.adminToken: a-token-of-20-letters, server.adminTokenFile: /t}", "pprof.port: 65536"} {
		if _, err := parseText(invalid); err == nil || strings.Contains(err.Error(), "a-token-of") {
			t.Errorf("%s: got %v, want an error without the token", invalid, err)
		}
	}
}
