package metricset

import (
	"runtime/metrics"

	"github.com/prometheus/client_golang/prometheus"
)

// addRemovedRuntimeMetrics adds what older versions of the Prometheus client reported about the Go
// runtime, because dashboards and alerts of the predecessor may use it.
func (s *Set) addRemovedRuntimeMetrics() {
	s.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "go_memstats_gc_cpu_fraction",
			Help: "Fraction of the available processor time that garbage collection has used since the program started."}, gcCPUFraction),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "go_memstats_lookups_total",
			Help: "Always 0, as in all Go programs since Go 1.10."}, func() float64 { return 0 }),
	)
}

func gcCPUFraction() float64 {
	samples := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"}}
	metrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() != metrics.KindFloat64 {
			return 0 // this Go release has other names
		}
	}
	gc, total := samples[0].Value.Float64(), samples[1].Value.Float64()
	if total == 0 {
		return 0
	}
	return gc / total
}
