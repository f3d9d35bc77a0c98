package config

import (
	"net"

	"github.com/vedette-io/vedette/internal/tracing/otlp"
	"github.com/vedette-io/vedette/internal/version"
)

// Tracing configures the export of traces over OTLP. The agent records operations that the server traces. The
// OTEL_EXPORTER_OTLP_* variables apply too, for example for headers and certificates.
type Tracing struct {
	// Record and export traces.
	Enabled bool `config:"enabled" default:"false"`
	// Host and port of the collector's receiver for OTLP over gRPC.
	Endpoint string `config:"endpoint" default:"localhost:4317"`
	// Connect to the collector without TLS.
	Insecure bool `config:"insecure" default:"false"`
}

// TraceExport returns the configuration of the export of traces.
func (c *Config) TraceExport() otlp.Config {
	return otlp.Config{Endpoint: c.Tracing.Endpoint, Insecure: c.Tracing.Insecure, Service: "vedette-agent", Instance: string(c.AgentID),
		Version: version.String()}
}

func (c *Config) checkTracing() {
	if host, port, err := net.SplitHostPort(c.Tracing.Endpoint); err != nil || host == "" || port == "" {
		c.addProblem("tracing.endpoint", "%q must be a host and a port, for example collector:4317, got %q", "tracing.endpoint", c.Tracing.Endpoint)
	}
}
