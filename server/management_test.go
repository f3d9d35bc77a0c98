package server

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/admin"
	"github.com/vedette-io/vedette/internal/configreload"
	"github.com/vedette-io/vedette/internal/httpserver"
	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
	"github.com/vedette-io/vedette/test/ports"
)

// managed returns the configuration of a server whose REST port requires client certificates, and that has a
// port for probes.
func managed(t *testing.T, database string) Config {
	t.Helper()
	cfg := config(database)
	cfg.RESTTLS = keypairtest.New(t).ServerTLS()
	cfg.Management.Address, cfg.MetricsAddress, cfg.Version = "127.0.0.1:0", "127.0.0.1:0", "v1"
	cfg.ConfigHandler = configreload.Handler(admin.Guard{}, func() configreload.Effective { return configreload.Effective{Name: "s1"} })
	return cfg
}

// ask sends a request to the port for probes. A forwarded one does not come from an operator.
func ask(t *testing.T, s *Server, method, path string, headers ...string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Management().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(text))
}

// awaitReady waits until the port for probes says that the server is ready.
func awaitReady(t *testing.T, s *Server) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		status, body := ask(t, s, http.MethodGet, "/health/readiness")
		if status == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server is not ready: %d %s", status, body)
		}
	}
}

// TestStrangersSeeNoMoreThanState checks that probes and metrics work without a client certificate, that strangers see no more
// than a state, and that nothing else is served.
func TestStrangersSeeNoMoreThanState(t *testing.T) {
	s, _ := startServer(t, managed(t, "sqlite:"+filepath.Join(t.TempDir(), "v.db")))
	awaitReady(t, s)
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the certificate of this test
	if response, err := insecure.Get("https://" + s.REST().String() + "/health"); err == nil {
		response.Body.Close()
		t.Errorf("the REST port answered %s without a client certificate", response.Status)
	}
	stranger := []string{"X-Forwarded-For", "10.0.0.1"}
	for _, tt := range []struct {
		method, path string
		headers      []string
		status       int
		is, contains string
	}{
		{"GET", "/health", nil, 200, "", `"components":`},
		{"GET", "/health", stranger, 200, `{"status":"UP"}`, ""},
		{"GET", "/health/liveness", stranger, 200, `{"status":"UP"}`, ""},
		{"GET", "/health/readiness", stranger, 200, `{"status":"UP"}`, ""},
		{"HEAD", "/health/readiness", stranger, 200, "", ""},
		{"GET", "/ready", stranger, 200, `{"ready":true}`, ""},
		{"GET", "/metrics", stranger, 200, "", "\nvedette_server_ready 1\n"},
		{"GET", "/prometheus_metrics", nil, 200, "", "\nvedette_server_ready 1\n"},
		{"GET", "/config", nil, 200, "", `"name":"s1"`},
		{"GET", "/config", stranger, 401, "", "for operators"},
		{"POST", "/health", nil, 405, "", ""},
		{"GET", "/credentials", nil, 404, "", ""},
		{"GET", "/vedette/v1/accounts", nil, 404, "", ""},
		{"GET", "/health/liveness/../../credentials", nil, 404, "", ""},
		{"GET", "/health", []string{"Host", "evil.example.com"}, 403, "", "host name"},
		{"GET", "/health?" + strings.Repeat("x", 9<<10), nil, 200, "", ""},
	} {
		status, body := ask(t, s, tt.method, tt.path, tt.headers...)
		if status != tt.status || tt.is != "" && body != tt.is || !strings.Contains(body, tt.contains) {
			t.Errorf("%s %.60s %.60q: got %d %.300s, want %d %s%s", tt.method, tt.path, tt.headers, status, body, tt.status, tt.is, tt.contains)
		}
	}
	wide, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Management().String()+"/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	wide.Header.Set("X-Wide", strings.Repeat("x", 30<<10))
	if response, err := http.DefaultClient.Do(wide); err == nil { // otherwise the connection ends before the client has read why
		response.Body.Close()
		if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a header of 30 KiB: got %s", response.Status)
		}
	}
}

// TestManagementPortWithoutDatabase checks that only operators learn why the server is not ready.
func TestManagementPortWithoutDatabase(t *testing.T) {
	address := ports.Unused(t)
	s, _ := startServer(t, managed(t, "postgres://u@"+address+"/d"))
	for path, want := range map[string]string{
		"/health": `503 {"status":"DOWN"}`, "/health/readiness": `503 {"status":"OUT_OF_SERVICE"}`,
		"/health/liveness": `200 {"status":"UP"}`, "/ready": `503 {"ready":false}`,
	} {
		status, body := ask(t, s, http.MethodGet, path, "Via", "1.1 proxy")
		if got := fmt.Sprintf("%d %s", status, body); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
		if status, body := ask(t, s, http.MethodGet, path); path == "/health/readiness" && (status != 503 || !strings.Contains(body, `"reason":`)) {
			t.Errorf("%s for operators: got %d %s", path, status, body)
		}
	}
}

// TestOneAddressCannotOccupyManagementPort occupies the port from one address. Another one is served.
func TestOneAddressCannotOccupyManagementPort(t *testing.T) {
	s, _ := startServer(t, managed(t, "sqlite:"+filepath.Join(t.TempDir(), "v.db")))
	for range httpserver.MaxConnections / 2 {
		conn, err := net.Dial("tcp", s.Management().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if status, body := ask(t, s, http.MethodGet, "/health/liveness"); status != http.StatusServiceUnavailable || !strings.Contains(body, "which is the limit") {
		t.Errorf("the address that occupies the port: got %d %s", status, body)
	}
	other := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}}
	response, err := other.Get("http://" + s.Management().String() + "/health/liveness")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("another address: got %s", response.Status)
	}
}
