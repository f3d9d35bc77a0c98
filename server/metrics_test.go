package server

import (
	"crypto/tls"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/upstream"
)

// scrape returns the server's metrics.
func scrape(t *testing.T, s *Server) string {
	t.Helper()
	response, err := http.Get("http://" + s.Metrics().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("got %d, %v", response.StatusCode, err)
	}
	return string(body)
}

func wantMetrics(t *testing.T, got string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(got, "\n"+line) {
			t.Errorf("got no line %q in\n%s", line, got)
		}
	}
}

func TestMetricsOfServer(t *testing.T) {
	cfg := config("sqlite:" + filepath.Join(t.TempDir(), "v.db"))
	cfg.MetricsAddress, cfg.Version = "127.0.0.1:0", "v1"
	cfg.Upstream = &upstream.Config{BaseURL: "http://127.0.0.1:1"} // nobody listens there
	s, _ := startServer(t, cfg)
	awaitHealth(t, s, func(code int, _ string) bool { return code == http.StatusOK })
	for _, path := range []string{"/vedette/v1/accounts", "/credentials", "/no/such/path", "/health/readiness", "/securityGroups/aws"} {
		response, err := http.Get("http://" + s.REST().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	wantMetrics(t, scrape(t, s), "vedette_server_ready 1\n", "vedette_server_lease_held 1\n", "vedette_server_agents 0\n",
		`vedette_server_accounts{state="stalled"} 0`+"\n", `vedette_server_build_info{go_version="go1.`,
		`vedette_server_http_requests_total{code="200",route="GET /vedette/v1/accounts"} 1`,
		`vedette_server_http_requests_total{code="503",route="GET /credentials"} 1`,
		`vedette_server_http_requests_total{code="200",route="GET /health/readiness"} 1`,
		`vedette_server_http_requests_total{code="503",route="passed on"} 1`,
		"vedette_server_upstream_requests_total ", `vedette_server_upstream_failures_total{reason="unreachable"} `,
		`vedette_server_store_transactions_total{result="committed"} `, `vedette_server_database_connections{pool="read"} `,
		"vedette_server_tasks_running 0\n", `vedette_server_cacher_changes_total{reason="balance",result="done"} 0`+"\n",
		`vedette_server_cacher_changes_total{reason="silent",result="failed"} 0`+"\n")
}

// TestMetricsWithoutDatabase checks that a server whose database does not answer has metrics.
func TestMetricsWithoutDatabase(t *testing.T) {
	cfg := config("postgres://vedette:x@127.0.0.1:1/vedette")
	cfg.MetricsAddress = "127.0.0.1:0"
	s, _ := startServer(t, cfg)
	wantMetrics(t, scrape(t, s), "vedette_server_ready 0\n", "vedette_server_lease_held 0\n")
}

func TestMetricsPortInUse(t *testing.T) {
	cfg := Config{ID: "s1", REST: "127.0.0.1:0", GRPC: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0", Store: sqldb.Config{URL: "sqlite::memory:"}}
	first, err := Listen(cfg, discardLogger)
	if err != nil {
		t.Fatal(err)
	}
	defer first.metricsListener.Close()
	cfg.MetricsAddress = first.Metrics().String()
	if _, err := Listen(cfg, discardLogger); err == nil || !strings.Contains(err.Error(), "listen for metrics on "+cfg.MetricsAddress) {
		t.Errorf("got error %v, want one that names the port", err)
	}
}

// TestMetricsHaveTLS checks that the port uses its TLS configuration.
func TestMetricsHaveTLS(t *testing.T) {
	authority := keypairtest.New(t)
	cfg := config("postgres://vedette:x@127.0.0.1:1/vedette")
	cfg.MetricsAddress, cfg.MetricsTLS = "127.0.0.1:0", authority.ServerTLS()
	cfg.MetricsTLS.ClientAuth = tls.NoClientCert
	s, _ := startServer(t, cfg)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool}}}
	defer client.CloseIdleConnections()
	response, err := client.Get("https://" + s.Metrics().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("got %d", response.StatusCode)
	}
}

func TestMetricsAreOffByDefault(t *testing.T) {
	s, err := Listen(config("sqlite::memory:"), discardLogger)
	if err != nil {
		t.Fatal(err)
	}
	if s.Metrics() != nil {
		t.Errorf("metrics are served on %s", s.Metrics())
	}
}
