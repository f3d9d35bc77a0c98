package prometheus_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/vedette-io/vedette/test/prometheus"
)

// TestAlertsPassPromtool runs promtool's tests of the alerts.
func TestAlertsPassPromtool(t *testing.T) {
	b := binaries(t)
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.CommandContext(t.Context(), b.Promtool, args...)
		cmd.Dir = "../../deploy/prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// binaries returns Prometheus' programs. The first time, it builds them.
func binaries(t *testing.T) prometheus.Binaries {
	t.Helper()
	if testing.Short() {
		t.Skip("needs Prometheus")
	}
	b, err := prometheus.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
