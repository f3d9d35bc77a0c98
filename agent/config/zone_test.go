package config

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDefaultZone checks that the default zone is the Deployment's name and the namespace.
func TestDefaultZone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if err := os.WriteFile(file, []byte("spinnaker\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ pod, file, want string }{
		{"armory-agent-6d4b75d7f9-x2x5v", file, "armory-agent_spinnaker"},
		{"a-b-c-86c57db685-zzzzz", file, "a-b-c_spinnaker"},
		{"armory-agent-0", file, ""},
		{"laptop", file, ""},
		{"", file, ""},
		{"armory-agent-6d4b75d7f9-x2x5v", file + ".absent", ""},
	} {
		if got := defaultZone(tt.pod, tt.file); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.pod, got, tt.want)
		}
	}
}
