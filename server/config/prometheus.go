package config

import (
	"fmt"

	"github.com/vedette-io/vedette/internal/settings"
)

// Prometheus configures the port for metrics.
type Prometheus struct {
	// Serve metrics for Prometheus on /metrics and /prometheus_metrics. They are numbers; no label names a
	// namespace, an object or a user.
	Enabled bool `config:"enabled" default:"false"`
	// Port for metrics.
	Port int `config:"port" format:"port" default:"8008"`
	// Address to listen on; * for all. Default: all addresses if prometheus.ssl.enabled is true, otherwise the loopback address.
	Address string `config:"address"`
	// How many accounts have metrics of their own, with a label account: the first ones by name; 0 for none. Each
	// has eight series.
	MaxAccounts int `config:"maxAccounts" default:"0" minimum:"0" maximum:"20000"`
	// Security of the port for metrics.
	SSL settings.SSL `config:"ssl"`
}

// MetricsListen returns the address of the port for metrics. The address is empty if metrics are not
// served.
func (c *Config) MetricsListen() ListenAddress {
	p := c.Prometheus
	if !p.Enabled {
		return ListenAddress{}
	}
	l := listen(p.Address, p.Port, p.SSL.Enabled, "prometheus.address", "prometheus.ssl.enabled")
	if l.Notice != "" {
		l.Notice = fmt.Sprintf("serving metrics on %s only: to let a Prometheus on another machine read them, set prometheus.address (\"*\" for all addresses)",
			l.Address)
	}
	if p.MaxAccounts > 0 && !l.isLoopback() && !p.SSL.Authenticates() {
		l.Warning = fmt.Sprintf("readers of the metrics on %s are not authenticated: every client that can reach the port may read the names of accounts. "+
			"Allow only Prometheus to reach the port, or set prometheus.ssl.clientAuth to need (see docs/securing.md)", l.Address)
	}
	return l
}
