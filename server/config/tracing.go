package config

import (
	"net"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/tracing/otlp"
	"github.com/vedette-io/vedette/internal/version"
)

// Tracing configures the export of traces over OTLP: of REST requests, tasks, operations and, if it is enabled at agents too, requests
// to API servers. The OTEL_EXPORTER_OTLP_* variables apply too, for example for headers and certificates.
type Tracing struct {
	// Record and export traces.
	Enabled bool `config:"enabled" default:"false"`
	// Host and port of the collector's receiver for OTLP over gRPC.
	Endpoint string `config:"endpoint" default:"localhost:4317"`
	// Connect to the collector without TLS.
	Insecure bool `config:"insecure" default:"false"`
	// Share of the REST requests that are traced, from 0 to 1. Requests whose caller decided that, by a header traceparent, do not count.
	SampleRatio float64 `config:"sampleRatio" default:"1"`
}

// TraceExport returns the configuration of the export of traces.
func (c *Config) TraceExport(id vedette.ServerID) otlp.Config {
	return otlp.Config{Endpoint: c.Tracing.Endpoint, Insecure: c.Tracing.Insecure, SampleRatio: c.Tracing.SampleRatio,
		Service: "vedette-server", Instance: string(id), Version: version.String()}
}

func (c *Config) checkTracing(t Tracing) {
	if host, port, err := net.SplitHostPort(t.Endpoint); err != nil || host == "" || port == "" {
		c.addProblem("tracing.endpoint", "%q must be a host and a port, for example collector:4317, got %q", "tracing.endpoint", t.Endpoint)
	}
	if !(t.SampleRatio >= 0 && t.SampleRatio <= 1) { // also not a number
		c.addProblem("tracing.sampleRatio", "%q must be from 0 to 1, got %g", "tracing.sampleRatio", t.SampleRatio)
	}
}
