package config

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
)

// TestSettingsWithoutEffectAreLogged checks that each key without effect has one line with its reason, whatever the
// number of accounts.
func TestSettingsWithoutEffectAreLogged(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		want       []string
	}{
		{"no setting is inactive", "kubernetes.accounts: [{name: a}]", nil},
		{"these have their defaults", "{kubernetes.dynamicAccountsOnly: false, dynamicAccounts: {enabled: false, maxRetries: 3}}", nil},
		{"no user relies on these", "{clouddriver.keepAliveHeartbeatSeconds: 60, kubernetes.accounts: [{name: a, cacheThreads: 2}, {name: b, cacheThreads: 3}]}", []string{
			`level=INFO msg="setting without effect" key=clouddriver.keepAliveHeartbeatSeconds at=c.yml:1:41 reason="The server's agents.heartbeatSeconds decides."`,
			`level=INFO msg="setting without effect" key=kubernetes.accounts[].cacheThreads at=c.yml:1:91 reason="The agent watches and does not poll."`}},
		{"accounts of another source", "dynamicAccounts.enabled: true", []string{
			`level=WARN msg="setting without effect" key=dynamicAccounts at=c.yml:1:1 reason="Accounts come from files: the agent uses a new entry, or a new file that spring.config.import names, within 5 seconds."`}},
		{"a group", "hub: {connection: {grpc: h:1, insecure: true}, auth.token: hunter2}", []string{
			`level=WARN msg="setting without effect" key=hub at=c.yml:1:26 reason="The predecessor's cloud service no longer exists. Set clouddriver.grpc to the address of a server."`}},
		{"several accounts", "{kubernetes.accounts: [{name: a, liveManifestCalls: true}, {name: b, oAuthScopes: [x], liveManifestCalls: true}, {name: ''}]}", []string{
			`level=WARN msg="setting without effect" key=kubernetes.accounts[].liveManifestCalls at=c.yml:1:53 reason="The store answers while the kind's feed is live; otherwise the server reads the manifest from the cluster."`}},
		{"of other products", "{redis.x: 1, clouddriver.grpc: 'h:1'}", []string{`level=WARN msg="unknown keys of other products are ignored" keys=redis.x`}},
	} {
		c, err := parse("c.yml", []byte(tt.file), nil)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		var log bytes.Buffer
		configfile.LogUnused(slog.New(slog.NewTextHandler(&log, nil)), c, "docs/config-agent.md")
		var got []string
		for line := range strings.Lines(log.String()) {
			_, line, _ = strings.Cut(strings.TrimSpace(line), " ")
			got = append(got, line)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

// TestNoticesOfSettingsWithoutEffect checks settings that others switch off, or that are beyond a limit.
func TestNoticesOfSettingsWithoutEffect(t *testing.T) {
	for file, want := range map[string]string{
		"prometheus: {port: 9000, ssl.clientAuth: none}":                       "c.yml:1:20: prometheus.port has no effect, because prometheus.enabled is not true",
		"prometheus: {port: 8008}":                                             "",
		"prometheus: {enabled: true, port: 9000}":                              "",
		"{balanceConnection: true, clouddriverNamespace: spin, domainName: d}": "",
		"clouddriverNamespace: spin":                                           "clouddriverNamespace has no effect, because balanceConnection is not true",
		"{balanceConnection: true, domainName: d}":                             "domainName has no effect, because balanceConnection is not true, or clouddriverNamespace is not set",
		"pprof.port: 1":                                                             "pprof.port has no effect, because pprof.enabled is not true",
		"tracing.endpoint: x:1":                                                     "tracing.endpoint has no effect, because tracing.enabled is not true",
		"secrets.vault.url: http://v":                                               "secrets.vault.url has no effect, because secrets.vault.enabled is not true",
		"kubernetes.retries: {enabled: false, maxRetries: 3}":                       "kubernetes.retries.maxRetries has no effect, because kubernetes.retries.enabled is false",
		"kubernetes.cacheGroupSize: 5":                                              "kubernetes.cacheGroupSize has no effect, because kubernetes.cacheGroupDelayMs is 0",
		"kubernetes.cacheGroupDelayMs: 5":                                           "kubernetes.cacheGroupDelayMs has no effect, because kubernetes.cacheGroupSize is 0",
		"kubernetes: {cacheGroupDelayMs: 5, cacheGroupSize: 5}":                     "",
		"logging.maxBackups: 3":                                                     "logging.maxBackups has no effect, because logging.file is not the path of a file",
		"logging: {maxBackups: 3, file: /var/log/a.log}":                            "",
		"management.server.address: '*'":                                            "management.server.address has no effect, because management.server.port is not set",
		"management.server: {port: 8082, address: '*'}":                             "management.server.port is server.port, which serves the paths for probes anyway",
		"tasks.totalBudget: 2000":                                                   "", // it counts (agent/watch.TestBudgetAtMost)
		"tasks.budgetPerAccount: 50":                                                "c.yml:1:25: tasks.budgetPerAccount is 50, but at most 4 lists of one account run at the same time",
		"tasks.budgetPerAccount: 4":                                                 "",
		"timeoutSeconds: 71":                                                        "timeoutSeconds is 71, but at most 70 seconds are waited for",
		"kubernetes.accounts: [{name: a, serviceAccount: true, kubeconfigFile: x}]": "the kubeconfig of the account has no effect, because serviceAccount is true: a",
		"kubernetes.reconnectTimeoutMs: 5000":                                       "",
	} {
		c, err := parse("c.yml", []byte(file), testEnv)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		got := strings.Join(c.Notices(), "\n")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}
