package config

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
)

// TestSettingsWithoutEffectAreLogged checks that each key without effect has one line with its reason.
func TestSettingsWithoutEffectAreLogged(t *testing.T) {
	for _, tt := range []struct{ name, file, warnings, notes string }{
		{"no setting is inactive", "server.port: 7002", "", ""},
		{"settings on which nobody relies", "{redis.enabled: true, sql.migration.user: m, kubernetes.enabled: true, aws.enabled: false, artifacts.gitrepo: {enabled: false, accounts: []}}",
			"", "sql.migration, redis"},
		{"other servers, accounts and providers", "{armory.kubesvc: {cluster: kubernetes, disableV2Provider: true, dynamicAccounts: {enabled: true}}, kubernetes: {enabled: true, accounts: [{name: a}]}, aws: {enabled: true}, spectator.x: 1}",
			"kubesvc.dynamicAccounts, kubernetes, aws", "kubesvc.disableV2Provider, spectator"},
	} {
		c, err := parse("c.yml", []byte(tt.file), nil)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		var log bytes.Buffer
		configfile.LogUnused(slog.New(slog.NewTextHandler(&log, nil)), c, "docs/config-server.md")
		keys := map[string][]string{}
		for line := range strings.Lines(log.String()) {
			if !strings.Contains(line, `msg="setting without effect"`) || !strings.Contains(line, " reason=\"") || !strings.Contains(line, " at=c.yml:1:") {
				t.Errorf("%s: got %q", tt.name, line)
			}
			_, key, _ := strings.Cut(line, " key=")
			key, _, _ = strings.Cut(key, " ")
			level := map[bool]string{true: "WARN", false: "INFO"}[strings.Contains(line, "level=WARN")]
			keys[level] = append(keys[level], key)
		}
		if warnings, notes := strings.Join(keys["WARN"], ", "), strings.Join(keys["INFO"], ", "); warnings != tt.warnings || notes != tt.notes {
			t.Errorf("%s: got warnings of %q and notes of %q, want %q and %q", tt.name, warnings, notes, tt.warnings, tt.notes)
		}
	}
}

// TestEveryIgnoredKeyHasAReason checks that no key lacks the reason why it has no effect.
func TestEveryIgnoredKeyHasAReason(t *testing.T) {
	for _, key := range configfile.Keys(Config{}) {
		if key.Status == configfile.IgnoredKey && reasons[key.Path] == "" {
			t.Errorf("%s has no reason", key.Path)
		}
	}
}

// TestNoticesOfSettingsWithoutEffect checks settings that others switch off.
func TestNoticesOfSettingsWithoutEffect(t *testing.T) {
	for file, want := range map[string]string{
		"prometheus.maxAccounts: 9":                                           "prometheus.maxAccounts has no effect, because prometheus.enabled is not true",
		"pprof.port: 1":                                                       "pprof.port has no effect",
		"tracing.sampleRatio: 0.5":                                            "tracing.sampleRatio has no effect",
		"secrets.vault.url: http://v":                                         "secrets.vault.url has no effect",
		"kubesvc.cluster-kubernetes.useDNS: true":                             "kubesvc.cluster-kubernetes.useDNS has no effect, because kubesvc.cluster is not kubernetes",
		"upstream.partial: true":                                              "upstream.partial has no effect, because upstream.baseUrl is not set",
		"services.fiat.cache.maxEntries: 5":                                   "services.fiat.cache.maxEntries has no effect, because services.fiat.enabled is not true",
		"cache: {all: true, kinds: [Pod]}":                                    "cache.kinds has no effect, because cache.all is true",
		"tasks.persistOutputForAllAccounts: true":                             "tasks.persistOutputForAllAccounts has no effect, because tasks.persistOutput is not true",
		"artifacts: {enabled: false, github: {enabled: true}}":                "artifacts.github.enabled has no effect, because artifacts.enabled is false",
		"artifacts.github: {accounts: [{name: a, username: u, password: p}]}": "the accounts are not used",
		"artifacts.s3: {requestTimeout: 5, accounts: [{name: a}]}":            "the accounts are not used",
		"logging.compress: true":                                              "logging.compress has no effect",
		"management.server.ssl.clientAuth: need":                              "",
		"management.server.address: '*'":                                      "management.server.address has no effect, because management.server.port is not set",
		"management.server.port: 7002":                                        "management.server.port is server.port",
		"management: {endpoints.web.basePath: /, health.x: 1}":                "",
	} {
		c, err := parse("c.yml", []byte(file), nil)
		if err != nil {
			if want == "" && strings.Contains(err.Error(), "client certificates require TLS") {
				continue
			}
			t.Fatalf("%s: %v", file, err)
		}
		var got []string
		for _, notice := range c.Notices() {
			if !strings.Contains(notice, "listening on 127.0.0.1") {
				got = append(got, notice)
			}
		}
		if (len(got) == 0) != (want == "") || !strings.Contains(strings.Join(got, "\n"), want) || len(got) > 1 {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}

// TestAddressesOfTrustedCallersWithoutEffect checks that operators learn which of the trusted callers never count.
func TestAddressesOfTrustedCallersWithoutEffect(t *testing.T) {
	for auth, want := range map[string]int{"none": 0, "want": 0, "need": 2} {
		const file = `server: {trustedCallers: [10.1.0.0/16, gate, "2001:db8::1"], ssl: {enabled: true, certFile: c, keyFile: k, cacertFile: a, clientAuth: %s}}`
		c, err := parse("c.yml", fmt.Appendf(nil, file, auth), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, notice := range c.Notices() {
			if strings.Contains(notice, "server.trustedCallers has ") {
				got = append(got, notice)
			}
		}
		if len(got) != want || want > 0 && !strings.Contains(got[0], "server.trustedCallers has 10.1.0.0/16, which has no effect") {
			t.Errorf("%s: got %q, want %d notices", auth, got, want)
		}
	}
}
