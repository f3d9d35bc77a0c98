package config

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
)

func TestInactiveSettingsAreLoggedOnce(t *testing.T) {
	for _, tt := range []struct{ name, file, keys string }{
		{"no setting is inactive", "kubernetes.accounts: [{name: a}]", ""},
		{"no user relies on these", "{clouddriver.keepAliveHeartbeatSeconds: 60, kubernetes.accounts: [{name: a, cacheThreads: 2}]}", ""},
		{"these have their defaults", "{kubernetes.dynamicAccountsOnly: false, dynamicAccounts: {enabled: false, maxRetries: 3}}", ""},
		{"accounts of another source", "dynamicAccounts.enabled: true", "dynamicAccounts"},
		{"several accounts", "{kubernetes.dynamicAccountsOnly: true, kubernetes.accounts: [{name: a, liveManifestCalls: true}, {name: b, oAuthScopes: [x], liveManifestCalls: true}, {name: ''}]}",
			"kubernetes.dynamicAccountsOnly, kubernetes.accounts[].liveManifestCalls"},
	} {
		c, err := parse("c.yml", []byte(tt.file), nil)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		var log bytes.Buffer
		configfile.LogUnused(slog.New(slog.NewTextHandler(&log, nil)), c, "docs/config-agent.md")
		want := 0
		if tt.keys != "" {
			want = 1
		}
		if got := strings.Count(log.String(), "settings without effect change behavior"); got != want || !strings.Contains(log.String(), tt.keys) {
			t.Errorf("%s: got %d warnings, want %d with %q; log:\n%s", tt.name, got, want, tt.keys, log.String())
		}
	}
}
