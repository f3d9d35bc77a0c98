package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/metrics"
	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
	"github.com/vedette-io/vedette/test/ports"
)

// TestManagementPortNeedsNoClientCertificate checks what the port for probes serves, to operators and to strangers, while the other port
// requires client certificates.
func TestManagementPortNeedsNoClientCertificate(t *testing.T) {
	authority := keypairtest.New(t)
	pair := authority.Issue("agent")
	for _, ssl := range []string{"{enabled: false}", fmt.Sprintf("{enabled: true, certFile: 'file:%s', keyFile: %s, cacertFile: %s, clientAuth: want}", pair.Cert, pair.Key, authority.File)} {
		port, err := ports.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("server.ssl: {enabled: true, certFile: %s, keyFile: %s, cacertFile: %s, clientAuth: need}\n"+
			"management.server: {port: %d, address: 127.0.0.1, ssl: %s}\nprometheus.enabled: true\n", pair.Cert, pair.Key, authority.File, port, ssl)
		cfg := loadAgentConfig(t, text)
		settings, err := newAgentConfig(cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		settings.Metrics = metrics.New("v1")
		log := slog.New(slog.DiscardHandler)
		a := agent.New(settings, log)
		handler := managementHandler(withConfig(agent.Handler(a, log), settings.Admin, newReloader(cfg, nil, a, settings.Metrics, log)), true, settings.Metrics, log)
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- serveManagement(ctx, cfg.Management, handler, log) }()
		checkManagementPort(t, cfg, port)
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

func checkManagementPort(t *testing.T, cfg *config.Config, port int) {
	t.Helper()
	scheme := "http"
	if cfg.Management.Server.SSL.Enabled {
		scheme = "https"
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the certificate of this test
	ask := func(path, forwarded string) (int, string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s://127.0.0.1:%d%s", scheme, port, path), nil)
		if err != nil {
			t.Fatal(err)
		}
		if forwarded != "" {
			request.Header.Set("X-Forwarded-For", forwarded)
		}
		response, err := client.Do(request)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return response.StatusCode, string(body), err
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, _, err := ask("/health", ""); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		path, forwarded string
		status          int
		contains, not   string
	}{
		{"/health", "10.0.0.1", 503, `{"status":"DOWN"}`, "accounts"}, // it has no server
		{"/health", "", 503, `"accounts":`, ""},
		{"/health/readiness", "10.0.0.1", 503, `{"status":"DOWN"}`, "accounts"},
		{"/health/liveness", "10.0.0.1", 200, `{"status":"UP"}`, ""},
		{"/ready", "10.0.0.1", 503, `"ready":false`, "reasons"},
		{"/metrics", "10.0.0.1", 200, "\ngo_goroutines ", ""},
		{"/prometheus_metrics", "", 200, "\ngo_goroutines ", ""},
		{"/config", "", 200, `"settings":`, ""},
		{"/config", "10.0.0.1", 401, "for operators", "settings"},
		{"/accounts", "", 404, "", ""},
		{"/watches", "", 404, "", ""},
		{"/debug/pprof/", "", 404, "", ""},
	} {
		status, body, err := ask(tt.path, tt.forwarded)
		if err != nil || status != tt.status || !strings.Contains(body, tt.contains) || tt.not != "" && strings.Contains(body, tt.not) {
			t.Errorf("%s %s, forwarded for %q: got %d %.300s, %v, want %d %s", scheme, tt.path, tt.forwarded, status, body, err, tt.status, tt.contains)
		}
	}
	remarks := strings.Join(running(t.Context(), cfg), "\n")
	if !strings.Contains(remarks, "the configuration is in effect since") {
		t.Errorf("check --effective says %s", remarks)
	}
}

func loadAgentConfig(t *testing.T, text string) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agent.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestEffectiveSettingsDescribeConnections checks what `check --effective` says about connections.
func TestEffectiveSettingsDescribeConnections(t *testing.T) {
	authority := keypairtest.New(t)
	pair := authority.Issue("agent")
	for text, want := range map[string][]string{
		"clouddriver.grpc: s:9091":                                    {"connection to the server: s:9091, plain text, no client certificate", "port for health and operators: all addresses, 8082, plain text"},
		"clouddriver: {grpc: 's:9091', tls.insecureSkipVerify: true}": {"TLS 1.2 or later, the server's certificate is not verified, no client certificate"},
		"clouddriver: {grpc: 's:9091', insecure: false}":              {"the server's certificate is signed by an authority of the system, no client certificate"},
		fmt.Sprintf("clouddriver: {grpc: 's:9091', tls: {cacertFile: %s, clientCertFile: %s, clientKeyFile: %s}}\nprometheus.enabled: true\nmanagement.server.port: 1", authority.File, pair.Cert, pair.Key): {
			"the server's certificate is signed by an authority in " + authority.File + ", client certificate " + pair.Cert + `, subject "CN=agent"`,
			"port for probes and metrics (management): 127.0.0.1:1, plain text", "port for metrics: all addresses, 8008, plain text"},
	} {
		got := strings.Join(loadAgentConfig(t, text).Connections(), "\n")
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: got\n%s\nwant %s", text, got, part)
			}
		}
	}
	said := strings.Join(running(t.Context(), loadAgentConfig(t, fmt.Sprintf("server.ssl: {enabled: true, certFile: %s, keyFile: %s, cacertFile: %s, clientAuth: need}", pair.Cert, pair.Key, authority.File))), "\n")
	if !strings.Contains(said, "its port 8082 requires client certificates: set management.server.port") {
		t.Errorf("got %s", said)
	}
}
