package config

import (
	"os"
	"path/filepath"
	"testing"
)

// TestZoneDefaultsToDeploymentAndNamespace checks that the default zone is the Deployment's name and the namespace, and that
// a configured one is kept.
func TestZoneDefaultsToDeploymentAndNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if err := os.WriteFile(file, []byte("spinnaker\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		configured, pod, file, want string
		inPod                       bool
	}{
		{"", "armory-agent-6d4b75d7f9-x2x5v", file, "armory-agent_spinnaker", true},
		{"", "a-b-c-86c57db685-zzzzz", file, "a-b-c_spinnaker", true},
		{"", "armory-agent-0", file, "", true},
		{"", "", file, "", false},
		{"", "armory-agent-6d4b75d7f9-x2x5v", file + ".absent", "", false},
		{"east", "armory-agent-6d4b75d7f9-x2x5v", file, "east", false},
	} {
		c := &Config{ZoneID: tt.configured}
		c.setZone(func(string) (string, bool) { return tt.pod, tt.pod != "" }, tt.file)
		pod, inPod := c.ZoneFromPod()
		if c.ZoneID != tt.want || inPod != tt.inPod || inPod && pod != (Pod{Namespace: "spinnaker", Name: tt.pod}) {
			t.Errorf("%s: got zone %q, pod %v %v, want %q", tt.pod, c.ZoneID, pod, inPod, tt.want)
		}
	}
}
