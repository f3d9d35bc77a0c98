package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/request"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/uplink"
)

// TestNewOperateConfig checks the conversion of settings for operations.
func TestNewOperateConfig(t *testing.T) {
	texts := []string{"timeout", "deadline exceeded"}
	mode := apply.Mode{Enabled: "allowed", ClearManagedFields: "allowed", ManifestDefaults: "allowed"}
	const strict = vedette.FieldValidationStrict
	for _, tt := range []struct {
		name, file string
		want       operate.Config
	}{
		{"by default failures are retried until the deadline", "", operate.Config{FieldValidation: strict, ServerSideApply: mode, Requests: request.Config{Retry: request.RetryPolicy{ErrorSubstrings: texts}}}},
		{"limits that are set",
			"kubernetes.retries: {maxRetries: 2, backOffMs: 3000, retryAnyError: true, retryableErrors: [etcd]}",
			operate.Config{FieldValidation: strict, ServerSideApply: mode, Requests: request.Config{Retry: request.RetryPolicy{MaxRetries: 2, Backoff: 3 * time.Second, AnyError: true, ErrorSubstrings: []string{"etcd"}}}}},
		{"retries are disabled", "kubernetes.retries.enabled: false", operate.Config{FieldValidation: strict, ServerSideApply: mode, Requests: request.Config{Retry: request.RetryPolicy{Disabled: true, ErrorSubstrings: texts}}}},
		{"no retries at most", "kubernetes.retries.maxRetries: 0", operate.Config{FieldValidation: strict, ServerSideApply: mode, Requests: request.Config{Retry: request.RetryPolicy{Disabled: true, ErrorSubstrings: texts}}}},
		{"unknown fields are dropped", "kubernetes.fieldValidation: Ignore", operate.Config{FieldValidation: vedette.FieldValidationIgnore, ServerSideApply: mode, Requests: request.Config{Retry: request.RetryPolicy{ErrorSubstrings: texts}}}},
		{"unknown fields cause warnings", "kubernetes.fieldValidation: warn", operate.Config{FieldValidation: vedette.FieldValidationWarn, ServerSideApply: mode, Requests: request.Config{Retry: request.RetryPolicy{ErrorSubstrings: texts}}}},
		{"modes of applies", "kubernetes.serverSideApply: {enabled: Never, clearManagedFields: always, kinds: [{kind: Deployment, enabled: always}]}",
			operate.Config{FieldValidation: strict, ServerSideApply: apply.Mode{Enabled: "Never", ClearManagedFields: "always", ManifestDefaults: "allowed",
				Kinds: []apply.KindMode{{Kind: "Deployment", Enabled: "always", ClearManagedFields: "allowed", ManifestDefaults: "allowed"}}}, Requests: request.Config{Retry: request.RetryPolicy{ErrorSubstrings: texts}}}},
	} {
		file := filepath.Join(t.TempDir(), "agent.yml")
		if err := os.WriteFile(file, []byte(tt.file+"\n# not empty\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got := newOperateConfig(cfg.Kubernetes); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
		if err := newOperateConfig(cfg.Kubernetes).ServerSideApply.Validate(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestBackoffSettingsBecomePauses checks that the settings for pauses between connections reach the uplink.
func TestBackoffSettingsBecomePauses(t *testing.T) {
	for text, want := range map[string]uplink.Config{
		"zoneId: z":                           {},
		"kubernetes.reconnectTimeoutMs: 5000": {ShortestPause: 5 * time.Second},
		"clouddriver.backoff: {baseDelay: 2000000000, multiplier: 1, jitter: 0, maxDelay: 10000000000}": {
			Backoff: uplink.Backoff{BaseDelay: new(2 * time.Second), Multiplier: new(1.), Jitter: new(0.), MaxDelay: new(10 * time.Second)}},
	} {
		settings, err := newUplinkConfig(loadConfig(t, text), slog.New(slog.DiscardHandler))
		if err != nil || !reflect.DeepEqual(settings.Backoff, want.Backoff) || settings.ShortestPause != want.ShortestPause {
			t.Errorf("%s: got %+v, %s, %v", text, settings.Backoff, settings.ShortestPause, err)
		}
	}
}

func TestRedactionRulesAreConverted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.yml")
	rules := "clouddriver.grpc: server:9091\nredact: {preset: strict, annotations: [a], configMapKeys: [b], environment: [c], secretAnnotations: [d]}\n"
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	settings, err := newAgentConfig(cfg, slog.New(slog.DiscardHandler))
	want := redact.Config{Preset: "strict", Annotations: []string{"a"}, ConfigMapKeys: []string{"b"}, Environment: []string{"c"}, SecretAnnotations: []string{"d"}}
	if err != nil || !reflect.DeepEqual(settings.Redact, want) {
		t.Errorf("got %+v, %v, want %+v", settings.Redact, err, want)
	}
}
