package config

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/tracing/otlp"
	"github.com/vedette-io/vedette/internal/version"
)

// Tracing configures the export of traces over OTLP: of REST requests, tasks, operations and, if it is enabled at agents too, requests
// to API servers. The OTEL_EXPORTER_OTLP_* variables apply too, for example for headers and certificates.
type Tracing struct {
	// Record and export traces.
	Enabled bool `config:"enabled" default:"false"`
	otlp.Config
	// Share of the REST requests that are traced, from 0 to 1. Requests whose caller decided that, by a header traceparent, do not count.
	SampleRatio float64 `config:"sampleRatio" default:"1" minimum:"0" maximum:"1"`
}

// TraceExport returns the configuration of the export of traces.
func (c *Config) TraceExport(id vedette.ServerID) otlp.Config {
	export := c.Tracing.Config
	export.SampleRatio = c.Tracing.SampleRatio
	export.Service = "vedette-server"
	export.Instance = string(id)
	export.Version = version.String()
	return export
}
