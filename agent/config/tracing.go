package config

import (
	"github.com/vedette-io/vedette/internal/tracing/otlp"
	"github.com/vedette-io/vedette/internal/version"
)

// Tracing configures the export of traces over OTLP. The agent records operations that the server traces. The
// OTEL_EXPORTER_OTLP_* variables apply too, for example for headers and certificates.
type Tracing struct {
	// Record and export traces.
	Enabled bool `config:"enabled" default:"false"`
	otlp.Config
}

// TraceExport returns the configuration of the export of traces.
func (c *Config) TraceExport() otlp.Config {
	export := c.Tracing.Config
	export.Service = "vedette-agent"
	export.Instance = string(c.AgentID)
	export.Version = version.String()
	return export
}
