package config

import "fmt"

// Prometheus configures the port for metrics.
type Prometheus struct {
	// Serve metrics for Prometheus on /metrics and /prometheus_metrics, without TLS. They are numbers; no label
	// names an account, a namespace, an object or a user.
	Enabled bool `config:"enabled" default:"false"`
	// Port for metrics.
	Port int `config:"port" default:"8008"`
	// Address to listen on; * for all. Default: the loopback address.
	Address string `config:"address"`
}

// MetricsListen returns the address of the port for metrics. The address is empty if metrics are not
// served.
func (c *Config) MetricsListen() ListenAddress {
	p := c.Prometheus
	if !p.Enabled {
		return ListenAddress{}
	}
	l := listen(p.Address, p.Port, false, "prometheus.address", "")
	if l.Notice != "" {
		l.Notice = fmt.Sprintf("serving metrics on %s only: to let a Prometheus on another machine read them, set prometheus.address (\"*\" for all addresses)",
			l.Address)
	}
	return l
}
