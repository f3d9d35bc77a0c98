// Package otlp exports spans over OTLP and gRPC, to a collector of OpenTelemetry.
package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/logthrottle"
)

// Config configures the export. The library also reads the OTEL_EXPORTER_OTLP_* variables, for
// headers and certificates.
type Config struct {
	// Host and port of the collector's receiver for OTLP over gRPC.
	Endpoint string `config:"endpoint" default:"localhost:4317"`
	// Connect to the collector without TLS.
	Insecure bool `config:"insecure" default:"false"`

	SampleRatio float64 // share of the requests without a parent that are traced, from 0 to 1

	Service  string // the program
	Instance string // the name of this agent or server
	Version  string
}

// Check reports what is wrong with the settings.
func (c Config) Check(to configfile.Checker) {
	if host, port, err := net.SplitHostPort(c.Endpoint); err != nil || host == "" || port == "" {
		to.Problem("endpoint", " must be a host and a port, for example collector:4317, got %q", c.Endpoint)
	}
}

// Exporter exports spans in the background. Spans that it cannot export are dropped.
type Exporter struct {
	provider *sdktrace.TracerProvider
	log      *slog.Logger
}

// closeTimeout bounds how long a program that ends waits for the collector.
const closeTimeout = 3 * time.Second

// New returns an Exporter. It does not wait for the collector.
func New(ctx context.Context, cfg Config, log *slog.Logger) (*Exporter, error) {
	options := []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(cfg.Endpoint)}
	if cfg.Insecure {
		options = append(options, otlptracegrpc.WithInsecure())
	}
	exporter, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("configure the export of traces to %s: %w", cfg.Endpoint, err)
	}
	logErrors(cfg.Endpoint, log)
	return &Exporter{log: log, provider: sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.SampleRatio))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", cfg.Service), attribute.String("service.instance.id", cfg.Instance),
			attribute.String("service.version", cfg.Version))),
	)}, nil
}

// logErrors logs errors of the export, which the library passes to a handler of the whole process.
func logErrors(endpoint string, log *slog.Logger) {
	limiter := &logthrottle.Limiter{Interval: time.Minute}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		if count, ok := limiter.Allow(); ok {
			log.Warn("traces are dropped: the collector does not accept them", "endpoint", endpoint, "count", count, "error", err)
		}
	}))
}

// Provider returns the provider of tracers.
func (e *Exporter) Provider() trace.TracerProvider { return e.provider }

// Close exports the remaining spans.
func (e *Exporter) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := e.provider.Shutdown(ctx); err != nil {
		e.log.Warn("the last traces are dropped", "error", err)
	}
}
