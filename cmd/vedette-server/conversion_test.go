package main

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/task"
)

// TestSettingsCount sets one key at a time, and checks the configuration of the server.
func TestSettingsCount(t *testing.T) {
	fiat := func(get func(*authorize.FiatConfig) any) func(server.Config) any {
		return func(c server.Config) any {
			if c.Fiat == nil {
				return nil
			}
			return get(c.Fiat)
		}
	}
	withFiat := func(setting string) string {
		return "services.fiat: {enabled: true, baseUrl: 'http://fiat', " + setting + "}"
	}
	for _, tt := range []struct {
		setting, want string
		got           func(server.Config) any
	}{
		{"dataDir: /data", "sqlite:/data/vedette.db", func(c server.Config) any { return c.Store.URL }},
		{"sql: {url: 'postgres://h/d', user: u, password: p}", "postgres://u:p@h/d", func(c server.Config) any { return c.Store.URL }},
		{"sql.connectionPools: {other: {jdbcUrl: 'jdbc:mysql://h/d', user: u, password: p, default: true}}", "mysql://u:p@h/d",
			func(c server.Config) any { return c.Store.URL }},
		{"sql: {url: 'postgres://h/d', readReplicas: ['postgres://r/d'], user: u}", "[postgres://u@r/d]", func(c server.Config) any { return c.Store.Replicas }},
		{"sql: {url: 'postgres://h/d', user: u, password: p, shards: [{name: b, url: 'mysql://h2/d', user: v, password: q, readReplicas: ['mysql://r/d']}, {name: c, url: 'postgres://h3/d'}]}",
			"[{b mysql://v:q@h2/d [mysql://v:q@r/d]} {c postgres://u:p@h3/d []}]", func(c server.Config) any { return c.Store.Shards }},
		{"server: {address: 10.1.2.3, port: 1}", "10.1.2.3:1", func(c server.Config) any { return c.REST }},
		{"server.hosts: [h]", "[h]", func(c server.Config) any { return c.RESTHosts }},
		{"server.trustedCallers: [10.1.0.0/16, gate]", "10.1.0.0/16 gate", func(c server.Config) any { return c.TrustedCallers }},
		{"server.readBytes: 1MiB", "1048576", func(c server.Config) any { return c.ReadBytes }},
		{"grpc.server: {address: 127.0.0.2, port: 2}", "127.0.0.2:2", func(c server.Config) any { return c.GRPC }},
		{"cache: {kinds: [Pod, Job], omitKinds: [Job]}", "[Pod]", func(c server.Config) any { return c.AgentServer.Kinds }},
		{"cache.all: true", "[all]", func(c server.Config) any { return c.AgentServer.Kinds }},
		{"cache: {kinds: [Pod], cacheDefaults: [Job]}", "[Pod Job]", func(c server.Config) any { return c.AgentServer.Kinds }},
		{"accounts.gracePeriod: 5m", "5m0s", func(c server.Config) any { return c.Accounts.Grace }},
		{"accounts.removeData: false", "true", func(c server.Config) any { return c.Accounts.KeepData }},
		{"agents.heartbeatSeconds: 7", "7s", func(c server.Config) any { return c.AgentServer.Heartbeat }},
		{"agents.pulseSeconds: 7", "7s", func(c server.Config) any { return c.AgentServer.Heartbeat }},
		{"agents.creditBytes: 1MiB", "1048576", func(c server.Config) any { return c.AgentServer.CreditBytes }},
		{"agents.ingestBytes: 32MiB", "33554432", func(c server.Config) any { return c.Ingest.MaxBytes }},
		{"agents.memoryBytes: 81MiB", "84934656", func(c server.Config) any { return c.AgentServer.MemoryBytes }},
		{"credentials.primaryAccountTypes: [p]", "[p]", func(c server.Config) any { return c.Clouddriver.Reloadable.CredentialRules().PrimaryAccountTypes }},
		{"credentials.challengeDestructiveActionsEnvironments: [e]", "[e]", func(c server.Config) any { return c.Clouddriver.Reloadable.CredentialRules().ChallengeEnvironments }},
		{withFiat(""), "http://fiat", fiat(func(f *authorize.FiatConfig) any { return f.BaseURL })},
		{withFiat("legacyFallback: true"), "true", fiat(func(f *authorize.FiatConfig) any { return f.LegacyFallback })},
		{withFiat("cache.maxEntries: 7"), "7", fiat(func(f *authorize.FiatConfig) any { return f.Cache.MaxEntries })},
		{withFiat("cache.expiresAfterWriteSeconds: 7"), "7s", fiat(func(f *authorize.FiatConfig) any { return f.Cache.TTL })},
		{withFiat("retry.maxBackoffMillis: 7000"), "7s", fiat(func(f *authorize.FiatConfig) any { return f.Retry.MaxElapsed })},
		{withFiat("retry.initialBackoffMillis: 70"), "70ms", fiat(func(f *authorize.FiatConfig) any { return f.Retry.InitialInterval })},
		{withFiat("retry.retryMultiplier: 3"), "3", fiat(func(f *authorize.FiatConfig) any { return f.Retry.Multiplier })},
		{"tasks.timeout: 7s", "7s", func(c server.Config) any { return c.Tasks.Timeout }},
		{"tasks.deleteTimeout: 7s", "7s", func(c server.Config) any { return c.Tasks.DeleteTimeout }},
		{"tasks.keep: 7h", "7h0m0s", func(c server.Config) any { return c.Tasks.Retention }},
		{"tasks.maxConcurrent: 7", "7", func(c server.Config) any { return c.Tasks.MaxTasks }},
		{"tasks.most: 7", "7", func(c server.Config) any { return c.Tasks.MaxTasks }},
		{"tasks.persistOutput: true", fmt.Sprint(task.OutputDebug), func(c server.Config) any { return c.Tasks.Output }},
		{"tasks: {persistOutput: true, persistOutputForAllAccounts: true}", fmt.Sprint(task.OutputAll), func(c server.Config) any { return c.Tasks.Output }},
		{"manifests.appLabels: false", "true", func(c server.Config) any { return c.Tasks.Rules.SkipAppLabels }},
		{"manifests.managedBySuffix: x", "x", func(c server.Config) any { return c.Tasks.Rules.ManagedBySuffix }},
		{"manifests.dockerImages: match-name-only", "true", func(c server.Config) any { return c.Tasks.Rules.MatchNameOnly }},
		{"jobs.detailedPodStatus: false", "true", func(c server.Config) any { return c.Clouddriver.OmitPodStatus }},
		{"history.maxBytes: 20MiB", "20971520", func(c server.Config) any { return c.Dispatch.MaxHistory }},
		{"history.keep: 7h", "7h0m0s", func(c server.Config) any { return c.Dispatch.KeepHistory }},
		{"{services.front50.baseUrl: 'http://front50', cache.checkApplicationInFront50: true}", "true true", func(c server.Config) any {
			return fmt.Sprint(c.Clouddriver.Projects != nil, c.Applications != nil)
		}},
	} {
		convert := func(text string) string {
			settings, err := newServerConfig(loadText(t, text), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			return fmt.Sprint(tt.got(settings))
		}
		if got := convert(tt.setting); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.setting, got, tt.want)
		}
		if got := convert("redis: {}"); got == tt.want {
			t.Errorf("%s: got %s without the setting, too", tt.setting, got)
		}
	}
}
