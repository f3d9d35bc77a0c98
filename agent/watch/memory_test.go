//go:build linux

package watch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/controlplane"
)

// TestMemoryOfHundredAccountsIsBounded watches the default kinds a hundred times, as an
// agent with a hundred clusters does.
func TestMemoryOfHundredAccountsIsBounded(t *testing.T) {
	p := controlplane.New(t, controlplane.Options{})    // not in parallel, because the child needs the processors
	const accounts, limit = 100, 200 * raceMemoryFactor // MiB
	child := startChild(t, p.Kubeconfig(), strings.ToLower(strings.Join(vedette.DefaultKinds, ",")), accounts)
	child.await(t, fmt.Sprintf("live %d ", accounts*len(vedette.DefaultKinds)))
	rss, peak := child.memory(t, "VmRSS"), child.memory(t, "VmHWM")
	t.Logf("%d feeds: %d MiB, at most %d MiB", accounts*len(vedette.DefaultKinds), rss, peak)
	if peak > limit {
		t.Errorf("got a peak of %d MiB, want at most %d", peak, limit)
	}
}

// BenchmarkClusterMemory measures the memory of watching many objects.
func BenchmarkClusterMemory(b *testing.B) {
	p := newControlPlane(b)
	createConfigMaps(b, p, 12000, strings.Repeat("abcdefgh", 600))
	for b.Loop() {
		child := startChild(b, p.Kubeconfig(), "configmap", 1)
		child.await(b, "live 1 ")
		b.ReportMetric(float64(child.memory(b, "VmRSS")), "MiB")
		b.ReportMetric(float64(child.memory(b, "VmHWM")), "peak-MiB")
		child.stdin.Close()
		child.await(b, "ended")
	}
}
