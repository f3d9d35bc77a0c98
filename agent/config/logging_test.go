package config

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEmptyLogFieldsAreFilledIn checks which fields get a value of their own.
func TestEmptyLogFieldsAreFilledIn(t *testing.T) {
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
		if got := withOwnFields(tt.fields, env, tt.namespaceFile); !maps.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
		if !maps.Equal(tt.fields, given) {
			t.Errorf("%s: the configuration was changed to %v", tt.name, tt.fields)
		}
	}
}

// TestLogHasFieldsOfTheAgent checks that the configuration of the log has the settings, with the fields of the agent.
func TestLogHasFieldsOfTheAgent(t *testing.T) {
	c, err := parse("agent.yml", []byte("logging: {file: /a.log, fields: {agentCluster: '', team: a}}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := c.LogConfig(envFrom("KUBERNETES_SERVICE_HOST", "10.0.0.1"))
	if got.File.Path != "/a.log" || !maps.Equal(got.Fields, map[string]string{"agentCluster": "10.0.0.1", "team": "a"}) {
		t.Errorf("got %+v", got)
	}
	if _, err := parse("agent.yml", []byte("logging: {maxBackups: -1}"), nil); err == nil || !strings.Contains(err.Error(), "must be from 0 to") {
		t.Errorf("got %v, want an error", err)
	}
}
