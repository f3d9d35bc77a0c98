// Package metricset defines the metrics of a program in one place, serves them to Prometheus, and
// describes them for the documentation.
//
// Values of labels must be bounded: a cluster, an agent or a caller must not be able to create
// series. Other and StatusCode help with that.
//
// A scrape reads memory only, because metrics are needed most when a database or a cluster hangs, and several Prometheus
// servers may scrape the same port. Counters and histograms are incremented where something happens. States are read during
// the scrape, from what the program has in memory anyway, under locks that are never held during I/O. Numbers by state are
// counted anew each time, because counters that follow every change of state drift as soon as one change is missed; with
// 10,000 accounts that takes 2.6 ms (BenchmarkLoad in server/assigner). What only the database knows, feeds and objects, a
// goroutine counts every 30 seconds. If the database does not answer, the last numbers remain, and
// vedette_server_store_transactions_total{result="unavailable"} and vedette_server_ready show it.
package metricset

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/vedette-io/vedette/internal/fair"
)

// Set is the metrics of one program. Its methods that add metrics are called before the first
// scrape, by one goroutine. Everything else is safe for concurrent use.
type Set struct {
	registry    *prometheus.Registry
	sampled     *sampledCollector
	definitions []Definition
	scrapes     *fair.Line // by address
}

// Definition describes a metric.
type Definition struct {
	Name   string
	Type   string // counter, gauge or histogram
	Labels []string
	Help   string
}

// The types of metrics.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// New returns a Set with the metrics of the Go runtime and of the process.
func New() *Set {
	s := &Set{registry: prometheus.NewRegistry(), sampled: &sampledCollector{}, scrapes: newScrapeLine()}
	s.registry.MustRegister(s.sampled, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.addRemovedRuntimeMetrics()
	return s
}

// Definitions returns the metrics of the set, without those of the Go runtime and of the process.
func (s *Set) Definitions() []Definition { return s.definitions }

// Counter adds a counter. Without labels it begins with 0.
func (s *Set) Counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	s.add(v, Definition{name, counter, labels, help})
	if len(labels) == 0 {
		v.WithLabelValues()
	}
	return v
}

// Gauge adds a gauge that the program sets. It has no values before.
func (s *Set) Gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	s.add(v, Definition{name, gauge, labels, help})
	return v
}

// Histogram adds a histogram with the given upper bounds.
func (s *Set) Histogram(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, labels)
	s.add(v, Definition{name, histogram, labels, help})
	if len(labels) == 0 {
		v.WithLabelValues()
	}
	return v
}

func (s *Set) add(c prometheus.Collector, d Definition) {
	s.registry.MustRegister(c)
	s.definitions = append(s.definitions, d)
}

// LatencyBounds are the upper bounds, in seconds, for what should take milliseconds and may take a
// minute.
func LatencyBounds() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
}
