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
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/uplink"
)

// TestNewOperateConfig checks the conversion of settings for operations.
func TestNewOperateConfig(t *testing.T) {
	texts := []string{"timeout", "deadline exceeded"}
	mode := apply.Mode{Enabled: "allowed", ClearManagedFields: "allowed"}
	const strict = vedette.FieldValidationStrict
	for _, tt := range []struct {
		name, file string
		want       operate.Config
	}{
		{"by default failures are retried until the deadline", "", operate.Config{FieldValidation: strict, ServerSideApply: mode, Retry: operate.RetryPolicy{ErrorSubstrings: texts}}},
		{"limits that are set",
			"kubernetes.retries: {maxRetries: 2, backOffMs: 3000, retryAnyError: true, retryableErrors: [etcd]}",
			operate.Config{FieldValidation: strict, ServerSideApply: mode, Retry: operate.RetryPolicy{MaxRetries: 2, Backoff: 3 * time.Second, AnyError: true, ErrorSubstrings: []string{"etcd"}}}},
		{"retries are disabled", "kubernetes.retries.enabled: false", operate.Config{FieldValidation: strict, ServerSideApply: mode, Retry: operate.RetryPolicy{Disabled: true, ErrorSubstrings: texts}}},
		{"no retries at most", "kubernetes.retries.maxRetries: 0", operate.Config{FieldValidation: strict, ServerSideApply: mode, Retry: operate.RetryPolicy{Disabled: true, ErrorSubstrings: texts}}},
		{"unknown fields are dropped", "kubernetes.fieldValidation: Ignore", operate.Config{FieldValidation: vedette.FieldValidationIgnore, ServerSideApply: mode, Retry: operate.RetryPolicy{ErrorSubstrings: texts}}},
		{"unknown fields cause warnings", "kubernetes.fieldValidation: warn", operate.Config{FieldValidation: vedette.FieldValidationWarn, ServerSideApply: mode, Retry: operate.RetryPolicy{ErrorSubstrings: texts}}},
		{"modes of applies", "kubernetes.serverSideApply: {enabled: Never, clearManagedFields: always, kinds: [{kind: Deployment, enabled: always}]}",
			operate.Config{FieldValidation: strict, ServerSideApply: apply.Mode{Enabled: "Never", ClearManagedFields: "always",
				Kinds: []apply.KindMode{{Kind: "Deployment", Enabled: "always", ClearManagedFields: "allowed"}}}, Retry: operate.RetryPolicy{ErrorSubstrings: texts}}},
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

// TestPauses checks the conversion of the settings for pauses between connections.
func TestPauses(t *testing.T) {
	for text, want := range map[string]uplink.Pauses{
		"zoneId: z":                                 {},
		"kubernetes.reconnectTimeoutMs: 5000":       {Shortest: 5 * time.Second},
		"clouddriver.backoff.maxDelay: 10000000000": {First: time.Second, Max: 10 * time.Second, Multiplier: 1.6, Low: 0.8, High: 1.2},
		"clouddriver.backoff: {baseDelay: 2000000000, multiplier: 1, jitter: 0}": {First: 2 * time.Second, Max: 2 * time.Minute, Multiplier: 1, Low: 1, High: 1},
	} {
		settings, err := newUplinkConfig(loadConfig(t, text), slog.New(slog.DiscardHandler))
		if err != nil || settings.Pauses != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, settings.Pauses, err, want)
		}
	}
}

// TestRedactConfig checks the conversion of the redaction rules.
func TestRedactConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.yml")
	rules := "clouddriver.grpc: server:9091\nredact: {annotations: [a], configMapKeys: [b], environment: [c], secretAnnotations: [d]}\n"
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	settings, err := newAgentConfig(cfg, slog.New(slog.DiscardHandler))
	want := redact.Config{Annotations: []string{"a"}, ConfigMapKeys: []string{"b"}, Environment: []string{"c"}, SecretAnnotations: []string{"d"}}
	if err != nil || !reflect.DeepEqual(settings.Redact, want) {
		t.Errorf("got %+v, %v, want %+v", settings.Redact, err, want)
	}
}
