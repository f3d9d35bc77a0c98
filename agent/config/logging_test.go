package config

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/logging"
)

// TestAutomaticFields checks which fields get a value of their own.
func TestAutomaticFields(t *testing.T) {
	namespaceFile := filepath.Join(t.TempDir(), "namespace")
	if err := os.WriteFile(namespaceFile, []byte("spinnaker\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name          string
		fields, env   map[string]string
		namespaceFile string
		want          map[string]string
	}{
		{"no fields", nil, map[string]string{"KUBERNETES_SERVICE_NAME": "c"}, namespaceFile, nil},
		{"both, by name", map[string]string{"agentCluster": "", "agentNamespace": "", "team": ""},
			map[string]string{"KUBERNETES_SERVICE_NAME": "c", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, namespaceFile,
			map[string]string{"agentCluster": "c", "agentNamespace": "spinnaker", "team": ""}},
		{"the cluster by host", map[string]string{"agentCluster": ""},
			map[string]string{"KUBERNETES_SERVICE_NAME": "", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, namespaceFile,
			map[string]string{"agentCluster": "10.0.0.1"}},
		{"outside of a pod", map[string]string{"agentCluster": "", "agentNamespace": ""}, nil, filepath.Join(namespaceFile, "absent"),
			map[string]string{"agentCluster": "", "agentNamespace": ""}},
		{"values of the user", map[string]string{"agentCluster": "mine", "agentNamespace": "mine"},
			map[string]string{"KUBERNETES_SERVICE_NAME": "c"}, namespaceFile, map[string]string{"agentCluster": "mine", "agentNamespace": "mine"}},
	} {
		env := func(name string) (string, bool) { value, ok := tt.env[name]; return value, ok }
		given := maps.Clone(tt.fields)
		if got := (Logging{Fields: tt.fields}).fields(env, tt.namespaceFile); !maps.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
		if !maps.Equal(tt.fields, given) {
			t.Errorf("%s: the configuration was changed to %v", tt.name, tt.fields)
		}
	}
}

// TestLoggingConfig checks the conversion of all settings, and their defaults.
func TestLoggingConfig(t *testing.T) {
	defaults := logging.File{Path: "stdout", MaxSizeMB: 1, MaxAgeDays: 10, MaxBackups: 10}
	all := logging.File{Path: "/a.log", MultiWrite: true, MaxSizeMB: 2, MaxAgeDays: 3, MaxBackups: 4, UTC: true, Compress: true}
	for file, want := range map[string]logging.File{
		"": defaults,
		"logging: {file: /a.log, multiWrite: true, maxSizeMb: 2, maxAgeDays: 3, maxBackups: 4, localTime: false, compress: true}": all,
	} {
		c, err := parse("agent.yml", []byte(file), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Logging.Config(os.LookupEnv); got.File != want || got.UTC != want.UTC || got.Level != "info" || got.Format != "text" {
			t.Errorf("%s: got %+v, want %+v", file, got, want)
		}
	}
	for _, invalid := range []string{"maxSizeMb: -1", "maxAgeDays: 106752", "maxBackups: 1048577"} {
		if _, err := parse("agent.yml", []byte("logging: {"+invalid+"}"), nil); err == nil || !strings.Contains(err.Error(), "must be from 0 to") {
			t.Errorf("%s: got %v, want an error", invalid, err)
		}
	}
}
