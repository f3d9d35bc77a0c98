package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/wire"
)

// probe returns the status code and the body of a path.
func probe(t *testing.T, s *Server, path string) (int, string) {
	t.Helper()
	response, err := http.Get("http://" + s.REST().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(body))
}

func dialGRPC(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// serviceStates returns the gRPC health of the server and of each service that agents use.
func serviceStates(t *testing.T, conn *grpc.ClientConn) map[string]string {
	t.Helper()
	servicesByState := map[string]string{}
	for _, service := range []string{"", wire.Caching_ServiceDesc.ServiceName, wire.Operations_ServiceDesc.ServiceName} {
		response, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatalf("%q: %v", service, err)
		}
		servicesByState[response.GetStatus().String()] += service + ","
	}
	return servicesByState
}

const allServices = ",vedette.wire.v1.Caching,vedette.wire.v1.Operations,"

// TestProbesWhileServerStarts checks that a server without a database is alive, so that it is not
// restarted, and not ready, so that it gets no requests.
func TestProbesWhileServerStarts(t *testing.T) {
	address := ports.Unused(t)
	cfg := config("postgres://me:hidden@" + address + "/vedette?sslmode=disable")
	cfg.ConfigHandler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "settings") })
	s, _ := startServer(t, cfg)
	if code, body := probe(t, s, "/config"); code != http.StatusOK || body != "settings" {
		t.Errorf("configuration: got %d %s", code, body)
	}
	if code, body := probe(t, s, "/health/liveness"); code != http.StatusOK || body != `{"status":"UP"}` {
		t.Errorf("liveness: got %d %s", code, body)
	}
	if code, body := probe(t, s, "/health/readiness"); code != http.StatusServiceUnavailable || !strings.Contains(body, `"status":"OUT_OF_SERVICE"`) || !strings.Contains(body, "the server is starting") {
		t.Errorf("readiness: got %d %s", code, body)
	}
	if code, body := probe(t, s, "/ready"); code != http.StatusServiceUnavailable || body != `{"ready":false,"reasons":["the server is starting"]}` {
		t.Errorf("ready: got %d %s", code, body)
	}
	if got := serviceStates(t, dialGRPC(t, s.GRPC().String())); got["NOT_SERVING"] != allServices {
		t.Errorf("gRPC health: got %v", got)
	}
}

func TestProbesWhenServerIsReady(t *testing.T) {
	cfg := config("sqlite:" + filepath.Join(t.TempDir(), "v.db"))
	cfg.Version = "test"
	s, _ := startServer(t, cfg)
	awaitHealth(t, s, func(code int, _ string) bool { return code == http.StatusOK })
	for _, path := range []string{"/health/liveness", "/health/readiness"} {
		if code, body := probe(t, s, path); code != http.StatusOK || body != `{"status":"UP"}` {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for path, want := range map[string]string{"/ready": `{"ready":true}`, "/version": `{"version":"test"}`} {
		if code, body := probe(t, s, path); code != http.StatusOK || body != want {
			t.Errorf("%s: got %d %s, want %s", path, code, body, want)
		}
	}
	if got := serviceStates(t, dialGRPC(t, s.GRPC().String())); got["SERVING"] != allServices {
		t.Errorf("gRPC health: got %v", got)
	}
}

// TestReadinessFollowsTheServersState steps through the states of a server.
func TestReadinessFollowsTheServersState(t *testing.T) {
	r := newReadiness(discardLogger)
	srv := grpc.NewServer()
	newDeferredAgentServer().register(srv)
	r.register(srv)
	h := newReadinessHandler(discardLogger, r)
	h.setReady(http.NotFoundHandler())
	for _, step := range []struct {
		name  string
		do    func()
		ready bool
	}{
		{"starting", func() {}, false},
		{"started", r.start, true},
		{"database unavailable", func() { r.setDatabaseProblem("gone", errors.New("gone")) }, false},
		{"database available", func() { r.setDatabaseProblem("", nil) }, true},
		{"draining", r.drain, false},
		{"database available while draining", func() { r.setDatabaseProblem("", nil) }, false},
	} {
		step.do()
		response := httptest.NewRecorder()
		h.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, readinessPath, nil))
		if ready := response.Code == http.StatusOK; ready != step.ready {
			t.Errorf("%s: %d %s", step.name, response.Code, response.Body)
		}
		for _, service := range r.services {
			got, err := r.health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
			if err != nil || (got.GetStatus() == healthpb.HealthCheckResponse_SERVING) != step.ready {
				t.Errorf("%s: got gRPC health %v of %q, error %v", step.name, got, service, err)
			}
		}
		response = httptest.NewRecorder()
		h.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, livenessPath, nil))
		if response.Code != http.StatusOK {
			t.Errorf("%s: got not alive, want alive", step.name)
		}
	}
	if len(r.services) != 3 {
		t.Errorf("got services %q", r.services)
	}
}

// TestReadinessFollowsDatabasePings checks that one failure is ignored, that a ping that hangs
// counts as a failure, and that one success makes the server ready.
func TestReadinessFollowsDatabasePings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReadiness(discardLogger)
		r.start()
		replies := []string{"yes", "no", "yes", "no", "hangs", "hangs", "yes", "yes"}
		ready := []bool{true, true, true, true, false, false, true, true}
		ctx, cancel := context.WithCancel(t.Context())
		pings := 0
		done := make(chan error, 1)
		go func() {
			done <- r.watchDatabase(ctx, func(ctx context.Context) error {
				reply := replies[min(pings, len(replies)-1)]
				pings++
				switch reply {
				case "no":
					return errors.New("refused")
				case "hangs":
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			})
		}()
		for i, want := range ready {
			time.Sleep(pingTimeout + time.Second)
			if got := r.reason() == ""; got != want {
				t.Errorf("after %q: got ready %t (%s)", replies[i], got, r.reason())
			}
			time.Sleep(pingInterval - pingTimeout - time.Second)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// denyingServer is an agent server that denies all agents.
type denyingServer struct {
	wire.UnimplementedCachingServer
}

func (denyingServer) Connect(grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]) error {
	return status.Error(codes.PermissionDenied, "not you")
}

// TestEarlyAgentWaitsForStore checks that an agent that connects while the store is being opened
// continues as soon as the agent server exists.
func TestEarlyAgentWaitsForStore(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	deferred, srv := newDeferredAgentServer(), grpc.NewServer()
	deferred.register(srv)
	go func() { _ = srv.Serve(l) }()
	defer srv.Stop()
	stream, err := wire.NewCachingClient(dialGRPC(t, l.Addr().String())).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	earlyCtx, cancel := context.WithCancel(t.Context())
	early, err := wire.NewOperationsClient(dialGRPC(t, l.Addr().String())).Serve(earlyCtx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := early.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("agent that leaves: got %v", err)
	}
	deferred.bind(func(r grpc.ServiceRegistrar) {
		wire.RegisterCachingServer(r, denyingServer{})
		wire.RegisterOperationsServer(r, wire.UnimplementedOperationsServer{})
	})
	if _, err := stream.Recv(); status.Code(err) != codes.PermissionDenied {
		t.Errorf("got %v", err)
	}
}
