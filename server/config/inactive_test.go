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
		{"no setting is inactive", "server.port: 7002", ""},
		{"settings without warn", "{redis.enabled: true, sql.migration.user: m, kubernetes.enabled: true, aws.enabled: false, artifacts.gitrepo: {enabled: false, accounts: []}}", ""},
		{"one server", "kubesvc.cluster: local", ""},
		{"other servers, accounts and providers", "{armory.kubesvc: {cluster: kubernetes, dynamicAccounts: {enabled: true}}, kubernetes: {enabled: true, accounts: [{name: a}]}, aws: {enabled: true}}",
			"kubesvc.cluster, kubesvc.dynamicAccounts, kubernetes, aws"},
	} {
		c, err := parse("c.yml", []byte(tt.file), nil)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		var log bytes.Buffer
		configfile.LogUnused(slog.New(slog.NewTextHandler(&log, nil)), c, "docs/config-server.md")
		want := 0
		if tt.keys != "" {
			want = 1
		}
		if got := strings.Count(log.String(), "settings without effect change behavior"); got != want || !strings.Contains(log.String(), tt.keys) {
			t.Errorf("%s: got %d warnings, want %d with %q; log:\n%s", tt.name, got, want, tt.keys, log.String())
		}
	}
}
