package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
	"github.com/vedette-io/vedette/server/config"
	"github.com/vedette-io/vedette/server/dispatch"
)

// TestOmittedKindsAreNotCached checks which kinds cache.omitKinds covers.
func TestOmittedKindsAreNotCached(t *testing.T) {
	for _, tt := range []struct {
		name              string
		kinds, omit, want []string
	}{
		{"nothing is omitted", []string{"Pod", "Deployment"}, nil, []string{"Pod", "Deployment"}},
		{"upper and lower case are equal", []string{"Pod", "Deployment"}, []string{"pod"}, []string{"Deployment"}},
		{"a name without a group covers Kubernetes' own groups", []string{"Deployment.apps", "Ingress.networking.k8s.io", "Pod"}, []string{"Deployment", "ingress"}, []string{"Pod"}},
		{"but not other groups", []string{"Service.serving.knative.dev"}, []string{"Service"}, []string{"Service.serving.knative.dev"}},
		{"a name with a group covers a name without a group", []string{"Deployment"}, []string{"deployment.apps"}, nil},
		{"unless the group is not one of Kubernetes", []string{"Service"}, []string{"Service.serving.knative.dev"}, []string{"Service"}},
		{"a group does not cover another group", []string{"Job.batch"}, []string{"Job.armory.io"}, []string{"Job.batch"}},
	} {
		if got := cachedKinds(config.Cache{Kinds: tt.kinds, OmitKinds: tt.omit}, nil); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestCachedKindsOfThePlugin checks cache.all and the plugin's cacheDefaults.
func TestCachedKindsOfThePlugin(t *testing.T) {
	for _, tt := range []struct {
		name         string
		cache        config.Cache
		always, want []string
	}{
		{"all", config.Cache{All: true, Kinds: []string{"Pod"}}, []string{"Job"}, []string{"all"}},
		{"defaults are added", config.Cache{Kinds: []string{"Pod"}}, []string{"Job", "pod"}, []string{"Pod", "Job"}},
		{"and never omitted", config.Cache{Kinds: []string{"Pod", "Job"}, OmitKinds: []string{"Job"}}, []string{"Job"}, []string{"Pod", "Job"}},
	} {
		if got := cachedKinds(tt.cache, tt.always); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestPluginKeysConfigureDispatch checks the keys of the plugin that concern operations.
func TestPluginKeysConfigureDispatch(t *testing.T) {
	for file, want := range map[string]dispatch.Config{
		"server.port: 7002": {AgentWait: 10 * time.Second, KeepHistory: 30 * 24 * time.Hour, MaxHistory: 1 << 30},
		"kubesvc: {operations.retry: {maxRetries: 2, backoffMs: 250}, jobs.operation-history.purge.weeks: 1}": {
			AgentWait: 500 * time.Millisecond, KeepHistory: 7 * 24 * time.Hour, MaxHistory: 1 << 30},
		"kubesvc.operations.retry.maxRetries: 0": {AgentWait: time.Millisecond, KeepHistory: 30 * 24 * time.Hour, MaxHistory: 1 << 30},
	} {
		path := filepath.Join(t.TempDir(), "kubesvc.yml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		settings, err := newServerConfig(cfg, slog.New(slog.DiscardHandler))
		if err != nil || settings.Dispatch != want {
			t.Errorf("%s: got %+v, %v; want %+v", file, settings.Dispatch, err, want)
		}
	}
}

// TestMetricsSettingsAreConverted checks the settings of the port for metrics.
func TestMetricsSettingsAreConverted(t *testing.T) {
	pair := keypairtest.New(t).Issue("server")
	for text, want := range map[string]struct {
		address string
		tls     bool
		limit   int
	}{
		"server.port: 7002": {},
		"prometheus: {enabled: true, port: 1, maxAccounts: 9}":                                                               {"127.0.0.1:1", false, 9},
		"prometheus: {enabled: true, port: 1, ssl: {enabled: true, certFile: " + pair.Cert + ", keyFile: " + pair.Key + "}}": {":1", true, 0},
	} {
		settings, err := newServerConfig(loadText(t, text), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if settings.MetricsAddress != want.address || (settings.MetricsTLS != nil) != want.tls || settings.Metrics.Accounts.Limit != want.limit {
			t.Errorf("%s: got %s, TLS %v, %d accounts", text, settings.MetricsAddress, settings.MetricsTLS, settings.Metrics.Accounts.Limit)
		}
	}
}
