package otlp

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/vedette-io/vedette/internal/tracing"
	"github.com/vedette-io/vedette/test/ports"
)

// receiver is a collector that keeps what it receives.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	mu       sync.Mutex
	requests []*collector.ExportTraceServiceRequest
}

// Export implements the protocol.
func (r *receiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, request)
	return &collector.ExportTraceServiceResponse{}, nil
}

// names returns the spans by their services.
func (r *receiver) names() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[string]string{}
	for _, request := range r.requests {
		for _, resource := range request.GetResourceSpans() {
			service := ""
			for _, attribute := range resource.GetResource().GetAttributes() {
				if attribute.GetKey() == "service.name" {
					service = attribute.GetValue().GetStringValue()
				}
			}
			for _, scope := range resource.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					names[service] += span.GetName() + " "
				}
			}
		}
	}
	return names
}

// TestSampledSpansReachTheCollector sends spans to a collector over the network.
func TestSampledSpansReachTheCollector(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	received, srv := &receiver{}, grpc.NewServer()
	collector.RegisterTraceServiceServer(srv, received)
	go func() { _ = srv.Serve(listener) }()
	defer srv.Stop()
	for ratio, want := range map[float64]string{1: "operation request ", 0: ""} {
		received.requests = nil
		exporter, err := New(t.Context(), Config{Endpoint: listener.Addr().String(), Insecure: true, SampleRatio: ratio, Service: "vedette-server"},
			slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, request := tracing.StartBy(t.Context(), exporter.Provider(), "request")
		_, operation := tracing.Start(ctx, "operation")
		operation.End()
		request.End()
		exporter.Close()
		if got := received.names()["vedette-server"]; got != want {
			t.Errorf("ratio %v: got spans %q, want %q", ratio, got, want)
		}
	}
}

// TestCollectorThatIsAway checks that spans of a collector that does not answer are dropped, with one
// line of the log.
func TestCollectorThatIsAway(t *testing.T) {
	var out strings.Builder
	exporter, err := New(t.Context(), Config{Endpoint: ports.Unused(t), Insecure: true, SampleRatio: 1}, slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	_, request := tracing.StartBy(t.Context(), exporter.Provider(), "request")
	request.End()
	exporter.Close()
	if got := out.String(); !strings.Contains(got, "traces are dropped") {
		t.Errorf("got log %q", got)
	}
}
