//go:build linux

package operate_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// peakMemory is the most memory of this process since the last call of resetPeakMemory, in
// bytes.
func peakMemory(b testing.TB) float64 {
	b.Helper()
	return procStatus(b, "VmHWM") * 1024
}

func procStatus(b testing.TB, name string) (kilobytes float64) {
	b.Helper()
	raw, err := os.ReadFile("/proc/self/status")
	must(b, err)
	_, rest, _ := strings.Cut(string(raw), name+":")
	_, err = fmt.Sscanf(rest, "%f", &kilobytes)
	must(b, err)
	return kilobytes
}

// resetPeakMemory returns free memory to the operating system, resets the peak, and returns the memory
// in use.
func resetPeakMemory(b testing.TB) float64 {
	b.Helper()
	debug.FreeOSMemory()
	must(b, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
	return procStatus(b, "VmRSS") * 1024
}

// BenchmarkPeakMemory reports the peak memory of the process in one operation, and its growth.
func BenchmarkPeakMemory(b *testing.B) {
	s := newTestbed(b, operate.Config{})
	s.createCustomKind("Blob", "blobs")
	blob := func(value string) vedette.Args {
		return vedette.ApplyArgs{Namespace: s.namespace, Manifest: encode(b, object{"apiVersion": s.customGroup() + "/v1", "kind": "Blob",
			"metadata": object{"name": "big"}, "spec": object{"v": strings.Repeat(value, 1_400_000)}})}
	}
	big := strings.Repeat("x", 20_000)
	for i := range 620 {
		must(b, plane.Create(b.Context(), s.path(core, "configmaps", ""), configMap(fmt.Sprintf("c-%d", i), object{"big": big})))
	}
	for _, tt := range []struct {
		name string
		args func(n int) vedette.Args
	}{
		{"apply-1.4MB", func(n int) vedette.Args { return blob(string(rune('a' + n%26))) }},
		{"list-12MB", func(int) vedette.Args { return vedette.ListArgs{Target: s.target("configmap", "")} }},
		{"version-of-620", func(n int) vedette.Args {
			return vedette.VersionArgs{Manifest: encode(b, configMap("c", nil)), Namespace: s.namespace}
		}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			s.TB = b
			maxPeak, maxGrowth := 0.0, 0.0
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				args := tt.args(n)
				before := resetPeakMemory(b)
				b.StartTimer()
				s.mustExecute(args)
				maxPeak, maxGrowth = max(maxPeak, peakMemory(b)), max(maxGrowth, peakMemory(b)-before)
			}
			b.ReportMetric(maxPeak/1e6, "peak-MB")
			b.ReportMetric(maxGrowth/1e6, "more-MB")
		})
	}
}
