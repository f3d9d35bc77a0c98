package metricset

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ConfigMetrics measure the configuration of a program.
type ConfigMetrics struct {
	successful, since *prometheus.GaugeVec
	reloads           *prometheus.CounterVec
}

// NewConfigMetrics adds the metrics of a configuration. Their names begin with prefix.
func NewConfigMetrics(s *Set, prefix string) *ConfigMetrics {
	m := &ConfigMetrics{
		successful: s.Gauge(prefix+"_config_last_reload_successful",
			"1 if the configuration files are in effect as they are, 0 if the last change of them was rejected."),
		since: s.Gauge(prefix+"_config_in_effect_since_seconds", "Unix time since which the configuration is in effect."),
		reloads: s.Counter(prefix+"_config_reloads_total",
			"Changes of the configuration that took effect (applied), or did not because there was an error (rejected).", "result"),
	}
	for _, result := range []string{"applied", "rejected"} {
		m.reloads.WithLabelValues(result)
	}
	return m
}

// ConfigInEffect records since when the configuration is in effect, and that it is that of the files.
func (m *ConfigMetrics) ConfigInEffect(since time.Time) {
	m.successful.WithLabelValues().Set(1)
	m.since.WithLabelValues().Set(float64(since.Unix()))
}

// ConfigApplied counts a change that took effect.
func (m *ConfigMetrics) ConfigApplied() { m.reloads.WithLabelValues("applied").Inc() }

// ConfigRejected counts a change that did not take effect.
func (m *ConfigMetrics) ConfigRejected() {
	m.successful.WithLabelValues().Set(0)
	m.reloads.WithLabelValues("rejected").Inc()
}
