package metricset

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Sampled is a metric whose values are read for each scrape, by a function that OnScrape has
// added. Only such functions may call Set.
type Sampled struct {
	desc      *prometheus.Desc
	valueType prometheus.ValueType
	values    []prometheus.Metric
}

// Set sets the value of one series for this scrape. It is called once for each series. Labels that are
// not valid UTF-8 are repaired, because Prometheus panics on them, and a panic during a scrape would end
// the program.
func (m *Sampled) Set(value float64, labels ...string) {
	for i, label := range labels {
		labels[i] = strings.ToValidUTF8(label, "\ufffd")
	}
	m.values = append(m.values, prometheus.MustNewConstMetric(m.desc, m.valueType, value, labels...))
}

// SampledGauge adds a gauge that is read for each scrape.
func (s *Set) SampledGauge(name, help string, labels ...string) *Sampled {
	return s.addSampled(prometheus.GaugeValue, Definition{name, gauge, labels, help})
}

// SampledCounter adds a counter that is kept elsewhere and read for each scrape.
func (s *Set) SampledCounter(name, help string, labels ...string) *Sampled {
	return s.addSampled(prometheus.CounterValue, Definition{name, counter, labels, help})
}

func (s *Set) addSampled(valueType prometheus.ValueType, d Definition) *Sampled {
	m := &Sampled{desc: prometheus.NewDesc(d.Name, d.Help, d.Labels, nil), valueType: valueType}
	s.sampled.metrics = append(s.sampled.metrics, m)
	s.definitions = append(s.definitions, d)
	return m
}

// OnScrape adds a function that reads values during each scrape, and may be called at any time. The
// function must not block: no I/O, and no lock that is held during I/O.
func (s *Set) OnScrape(sample func()) {
	s.sampled.mu.Lock()
	defer s.sampled.mu.Unlock()
	s.sampled.samplers = append(s.sampled.samplers, sample)
}

// sampledCollector collects all sampled metrics together, so that they are read once and at the
// same time.
type sampledCollector struct {
	mu       sync.Mutex // scrapes may overlap
	samplers []func()
	metrics  []*Sampled
}

// Describe implements prometheus.Collector. It describes nothing, because the metrics are added
// after the registration.
func (c *sampledCollector) Describe(chan<- *prometheus.Desc) {}

func (c *sampledCollector) Collect(to chan<- prometheus.Metric) {
	for _, m := range c.sample() {
		to <- m
	}
}

func (c *sampledCollector) sample() []prometheus.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sample := range c.samplers {
		sample()
	}
	var values []prometheus.Metric
	for _, m := range c.metrics {
		values = append(values, m.values...)
		m.values = nil
	}
	return values
}
