package main

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/config"
)

// loadText loads a configuration, and converts it.
func loadText(t *testing.T, text string) (*config.Config, agent.Config) {
	t.Helper()
	cfg := loadConfig(t, text)
	settings, err := newAgentConfig(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return cfg, settings
}

// TestSettingsCount sets one key at a time, and checks the configuration of the agent.
func TestSettingsCount(t *testing.T) {
	for _, tt := range []struct {
		setting, want string
		got           func(*config.Config, agent.Config) any
	}{
		{"agentId: a1", "a1", func(_ *config.Config, c agent.Config) any { return c.Uplink.Agent }},
		{"zoneId: z1", "z1", func(_ *config.Config, c agent.Config) any { return c.Uplink.ZoneID }},
		{"timeoutSeconds: 20", "20s", func(_ *config.Config, c agent.Config) any { return c.ConnectOptions.HeaderTimeout }},
		{"clouddriver.grpc: server:1", "server:1", func(_ *config.Config, c agent.Config) any { return c.Uplink.Target }},
		{"clouddriver.insecure: false", "true", func(_ *config.Config, c agent.Config) any { return c.Uplink.TLS }},
		{"outbox.maxBytes: 16MiB", "16777216", func(_ *config.Config, c agent.Config) any { return c.OutboxBytes }},
		{"kubernetes.wipeTLSBuffers: true", "true", func(_ *config.Config, c agent.Config) any { return c.ConnectOptions.WipeTLSBuffers }},
		{"kubernetes.cacheGroupSize: 7", "7", func(cfg *config.Config, _ agent.Config) any { return newBudget(cfg).GroupSize }},
		{"kubernetes.cacheGroupDelayMs: 1500", "1.5s", func(cfg *config.Config, _ agent.Config) any { return newBudget(cfg).GroupDelay }},
		{"kubernetes.maxFeedsPerAccount: 8", "8", func(_ *config.Config, c agent.Config) any { return c.Watch.MaxFeeds }},
		{"tasks.totalBudget: 5", "5", func(cfg *config.Config, _ agent.Config) any { return newBudget(cfg).Total }},
		{"tasks.budgetPerAccount: 2", "2", func(cfg *config.Config, _ agent.Config) any { return newBudget(cfg).PerAccount }},
		{"kubernetes.verifyIntervalSeconds: 90", "1m30s", func(_ *config.Config, c agent.Config) any { return c.Watch.VerifyInterval }},
		{"kubernetes.verifyIntervalSeconds: 0", "-1ns", func(_ *config.Config, c agent.Config) any { return c.Watch.VerifyInterval }},
		{"server: {host: 10.1.2.3, port: 1}", "10.1.2.3:1", func(cfg *config.Config, _ agent.Config) any { return cfg.Server.ListenAddress() }},
		{"server.adminTokenFile: /token", "/token", func(_ *config.Config, c agent.Config) any { return c.Admin.TokenFile }},
		{"prometheus: {host: 10.1.2.3, port: 2}", "10.1.2.3:2", func(cfg *config.Config, _ agent.Config) any { return cfg.Prometheus.ListenAddress() }},
		{"prometheus: {enabled: true, maxAccounts: 9}", "true 9", func(cfg *config.Config, _ agent.Config) any {
			return fmt.Sprint(cfg.Prometheus.Enabled, cfg.Prometheus.MaxAccounts)
		}},
		{"pprof: {enabled: true, port: 3}", "true 3", func(cfg *config.Config, _ agent.Config) any { return fmt.Sprint(cfg.Pprof.Enabled, cfg.Pprof.Port) }},
	} {
		cfg, settings := loadText(t, tt.setting)
		if got := fmt.Sprint(tt.got(cfg, settings)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.setting, got, tt.want)
		}
		cfg, settings = loadText(t, "redact: {}")
		if got := fmt.Sprint(tt.got(cfg, settings)); got == tt.want {
			t.Errorf("%s: got %s without the setting, too", tt.setting, got)
		}
	}
}

// TestAccountSettingsCount sets one key of an account at a time, and checks the agent's account.
func TestAccountSettingsCount(t *testing.T) {
	for _, tt := range []struct {
		setting, want string
		got           func(agent.Account) any
	}{
		{"name: b", "b", func(a agent.Account) any { return a.Name }},
		{"kubeconfigFile: /k", "/k", func(a agent.Account) any { return a.Access.KubeconfigFile }},
		{"kubeconfigContents: text", "text", func(a agent.Account) any { return string(a.Access.KubeconfigContents) }},
		{"context: c", "c", func(a agent.Account) any { return a.Access.Context }},
		{"serviceAccount: true", "true", func(a agent.Account) any { return a.Access.InCluster }},
		{"insecure: true", "true", func(a agent.Account) any { return a.Access.Insecure }},
		{"noProxy: true", "true", func(a agent.Account) any { return a.Access.NoProxy }},
		{"oAuthServiceAccount: /key.json", "/key.json", func(a agent.Account) any { return a.Access.OAuthServiceAccount }},
		{"oAuthScopes: [s]", "[s]", func(a agent.Account) any { return a.Access.OAuthScopes }},
		{"cloud: {provider: eks, server: 'https://s', eks: {clusterName: c, region: r, roleArn: a, externalId: secret, profile: p}}", "eks https://s c r a secret p",
			func(a agent.Account) any {
				c := a.Access.Cloud
				return strings.Join([]string{c.Provider, c.Server, c.EKS.ClusterName, c.EKS.Region, c.EKS.RoleARN, c.EKS.ExternalID.Reveal(), c.EKS.Profile}, " ")
			}},
		{"cloud: {provider: gke, server: 'https://s', certificateAuthorityFile: /ca.crt}", "/ca.crt",
			func(a agent.Account) any { return a.Access.Cloud.CertificateAuthorityFile }},
		{"cloud: {provider: gke, server: 'https://s', certificateAuthorityData: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmUwPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=}",
			"-----BEGIN CERTIFICATE-----\ne0==\n-----END CERTIFICATE-----\n", func(a agent.Account) any { return string(a.Access.Cloud.AuthorityData()) }},
		{"cloud: {provider: aks, server: 'https://s', aks: {login: spn, tenantId: t, clientId: c, clientSecret: secret, serverId: s, authorityHost: 'https://e'}}",
			"spn t c secret s https://e", func(a agent.Account) any {
				c := a.Access.Cloud.AKS
				return strings.Join([]string{c.Login, c.TenantID, c.ClientID, c.ClientSecret.Reveal(), c.ServerID, c.AuthorityHost}, " ")
			}},
		{"cloud: {provider: aks, server: 'https://s', aks: {login: spn, clientCertificateFile: /c.pem}}", "/c.pem",
			func(a agent.Account) any { return a.Access.Cloud.AKS.ClientCertificateFile }},
		{"cloud: {tokens: native}", "native", func(a agent.Account) any { return a.Access.Cloud.Tokens }},
		{"kinds: [Pod]", "[Pod] [Pod]", func(a agent.Account) any { return fmt.Sprint(a.Selection.Kinds, a.Properties.Kinds) }},
		{"omitKinds: [Job]", "[Job] [Job]", func(a agent.Account) any { return fmt.Sprint(a.Selection.OmitKinds, a.Properties.OmitKinds) }},
		{"namespaces: [n]", "[n] [n]", func(a agent.Account) any { return fmt.Sprint(a.Selection.Namespaces, a.Properties.Namespaces) }},
		{"omitNamespaces: [n]", "[n] [n]", func(a agent.Account) any { return fmt.Sprint(a.Selection.OmitNamespaces, a.Properties.OmitNamespaces) }},
		{"onlyNamespacedResources: true", "true", func(a agent.Account) any { return a.Selection.OnlyNamespaced }},
		{"onlySpinnakerManaged: true", "true true", func(a agent.Account) any {
			return fmt.Sprint(a.Selection.OnlySpinnakerManaged, a.Properties.OnlySpinnakerManaged)
		}},
		{"customResourceDefinitions: [{kind: C.x.io, scope: cluster}, {kind: D.x.io}]", "[{C.x.io cluster} {D.x.io Namespaced}]",
			func(a agent.Account) any { return a.Selection.CustomResourceDefinitions }},
		{"customResources: [{kubernetesKind: C.x.io, spinnakerKind: configs, deployPriority: 7, versioned: true, namespaced: false}]",
			"C.x.io configs 7 true false", func(a agent.Account) any {
				if len(a.Properties.CustomResources) == 0 {
					return nil
				}
				r := a.Properties.CustomResources[0]
				return fmt.Sprint(r.KubernetesKind, " ", r.SpinnakerKind, " ", r.DeployPriority, " ", r.Versioned, " ", *r.Namespaced)
			}},
		{"permissions: [{READ: [dev]}]", "[dev]", func(a agent.Account) any {
			if a.Properties.Permissions == nil {
				return nil
			}
			return a.Properties.Permissions.Read
		}},
		{"requiredGroupMembership: [ops]", "[ops] [ops]", func(a agent.Account) any {
			if a.Properties.Permissions == nil {
				return nil
			}
			return fmt.Sprint(a.Properties.Permissions.Read, a.Properties.Permissions.Write)
		}},
		{"environment: prod", "prod", func(a agent.Account) any { return a.Properties.Environment }},
		{"accountType: type", "type", func(a agent.Account) any { return a.Properties.AccountType }},
		{"rawResourcesEndpointConfig: {kindExpressions: [a], omitKindExpressions: [b]}", `{"kindExpressions":["a"],"omitKindExpressions":["b"]}`,
			func(a agent.Account) any { return string(a.Properties.RawResourceExpressions) }},
		{"cacheAllApplicationRelationships: true", "true", func(a agent.Account) any { return a.Properties.CacheAllRelationships }},
		{"metrics: false", "false", func(a agent.Account) any { return a.Properties.ShowsMetrics() }},
		{"checkReadiness: true", "true", func(a agent.Account) any { return a.Properties.CheckReadiness }},
		{"debug: true", "true", func(a agent.Account) any { return a.Properties.Debug }},
	} {
		account := func(fields string) agent.Account {
			_, settings := loadText(t, "kubernetes.accounts: [{"+fields+"}]")
			if len(settings.Accounts) != 1 {
				t.Fatalf("%s: got %d accounts", fields, len(settings.Accounts))
			}
			return settings.Accounts[0]
		}
		with := "name: a, " + tt.setting
		if tt.setting == "name: b" {
			with = tt.setting
		}
		if got := fmt.Sprint(tt.got(account(with))); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.setting, got, tt.want)
		}
		if got := fmt.Sprint(tt.got(account("name: a"))); got == tt.want {
			t.Errorf("%s: got %s without the setting, too", tt.setting, got)
		}
	}
}
