package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// configMetrics measure the configuration.
type configMetrics struct {
	successful, since *prometheus.GaugeVec
	reloads           *prometheus.CounterVec
}

func (m *Metrics) addConfig() {
	m.config = configMetrics{
		successful: m.Gauge("vedette_agent_config_last_reload_successful",
			"1 if the configuration files are in effect as they are, 0 if the last change of them was rejected."),
		since: m.Gauge("vedette_agent_config_in_effect_since_seconds", "Unix time since which the configuration is in effect."),
		reloads: m.Counter("vedette_agent_config_reloads_total",
			"Changes of the configuration that took effect (applied), or did not because there was an error (rejected).", "result"),
	}
	for _, result := range []string{"applied", "rejected"} {
		m.config.reloads.WithLabelValues(result)
	}
}

// ConfigInEffect records since when the configuration is in effect, and that it is that of the files.
func (m *Metrics) ConfigInEffect(since time.Time) {
	m.config.successful.WithLabelValues().Set(1)
	m.config.since.WithLabelValues().Set(float64(since.Unix()))
}

// ConfigApplied counts a change that took effect.
func (m *Metrics) ConfigApplied() { m.config.reloads.WithLabelValues("applied").Inc() }

// ConfigRejected counts a change that did not take effect.
func (m *Metrics) ConfigRejected() {
	m.config.successful.WithLabelValues().Set(0)
	m.config.reloads.WithLabelValues("rejected").Inc()
}
