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

// peak is the most memory of this process since the last call of resetPeak, in
// bytes.
func peak(b testing.TB) float64 {
	b.Helper()
	return statusOf(b, "VmHWM") * 1024
}

func statusOf(b testing.TB, name string) (kilobytes float64) {
	b.Helper()
	raw, err := os.ReadFile("/proc/self/status")
	must(b, err)
	_, rest, _ := strings.Cut(string(raw), name+":")
	_, err = fmt.Sscanf(rest, "%f", &kilobytes)
	must(b, err)
	return kilobytes
}

// resetPeak gives back what is free and begins to measure anew. It returns what
// is left.
func resetPeak(b testing.TB) float64 {
	b.Helper()
	debug.FreeOSMemory()
	must(b, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
	return statusOf(b, "VmRSS") * 1024
}

// BenchmarkMemory tells the most memory that the process had in one operation,
// and how much of that was more than before.
func BenchmarkMemory(b *testing.B) {
	s := newBench(b, operate.Config{})
	s.customKind("Blob", "blobs")
	blob := func(value string) vedette.Args {
		return vedette.ApplyArgs{Namespace: s.namespace, Manifest: encode(b, object{"apiVersion": s.group() + "/v1", "kind": "Blob",
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
			most, more := 0.0, 0.0
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				args := tt.args(n)
				before := resetPeak(b)
				b.StartTimer()
				s.done(args)
				most, more = max(most, peak(b)), max(more, peak(b)-before)
			}
			b.ReportMetric(most/1e6, "peak-MB")
			b.ReportMetric(more/1e6, "more-MB")
		})
	}
}
