package server

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func TestHostGuard(t *testing.T) {
	const loopback, all = "127.0.0.1:7002", "[::]:7002"
	for _, tt := range []struct {
		name, listenAddress, host string
		allowed                   bool
	}{
		{"an address", loopback, "127.0.0.1:7002", true},
		{"an address without a port", loopback, "127.0.0.1", true},
		{"an IPv6 address", "[::1]:7002", "[::1]:7002", true},
		{"an IPv6 address without a port", "[::1]:7002", "[::1]", true},
		{"localhost, as with port-forward", loopback, "localhost:7002", true},
		{"localhost in another case", loopback, "LocalHost.:80", true},
		{"no name, which browsers never send", loopback, "", true},
		{"a name that may resolve to 127.0.0.1", loopback, "evil.example:7002", false},
		{"the same on another loopback address", "127.0.0.9:7002", "evil.example", false},
		{"a name that begins with localhost", loopback, "localhost.evil.example:7002", false},
		{"a name that begins with an address", loopback, "127.0.0.1.evil.example", false},
		{"a Service's name", loopback, "spin-clouddriver:7002", false},
		{"a listed name", loopback, "Vedette.Intern:443", true},
		{"a listed name with a port", loopback, "other.intern", true},
		{"any name if the server listens on all addresses", all, "spin-clouddriver.spinnaker:7002", true},
		{"any name if the server listens on one address", "10.0.0.1:7002", "anything.example", true},
	} {
		address, err := net.ResolveTCPAddr("tcp", tt.listenAddress)
		if err != nil {
			t.Fatal(err)
		}
		called := false
		handler := hostGuard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }), address, []string{"vedette.intern", "other.intern:8443"})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/credentials", nil)
		r.Host = tt.host
		handler.ServeHTTP(httptest.NewRecorder(), r)
		if called != tt.allowed {
			t.Errorf("%s: %q on %s: got passed %t", tt.name, tt.host, tt.listenAddress, called)
		}
	}
}

// TestDNSRebindingIsRejected sends the requests that a browser sends for a page whose name resolves
// to 127.0.0.1. For the browser they are same-origin.
func TestDNSRebindingIsRejected(t *testing.T) {
	cfg := config("sqlite:" + filepath.Join(t.TempDir(), "v.db"))
	cfg.RESTHosts = []string{"mine.example"}
	s, _ := startServer(t, cfg)
	awaitHealth(t, s, func(code int, _ string) bool { return code == http.StatusOK })
	_, port, err := net.SplitHostPort(s.REST().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/kubernetes/ops", "/vedette/v1/operations", "/credentials", "/vedette/v1/objects"} {
		if code, body := postWithHost(t, s, "evil.example:"+port, path); code != http.StatusForbidden || !strings.Contains(body, "server.hosts") {
			t.Errorf("%s: %d %s", path, code, body)
		}
		if code, body := postWithHost(t, s, "mine.example:"+port, path); code == http.StatusForbidden {
			t.Errorf("%s by a listed name: got %d %s", path, code, body)
		}
	}
}

// postWithHost returns the message of an error in either API's format.
func postWithHost(t *testing.T, s *Server, host, path string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.REST().String()+path, strings.NewReader("[]"))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	r.Header.Set("Origin", "http://"+host)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var vedetteBody struct {
		Error struct{ Kind, Message string }
	}
	var clouddriverBody struct{ Error, Message string }
	if strings.HasPrefix(path, "/vedette/") {
		err = json.Unmarshal(raw, &vedetteBody)
	} else {
		err = json.Unmarshal(raw, &clouddriverBody)
	}
	if err != nil {
		t.Errorf("%s: got error %v in %s", path, err, raw)
	}
	return response.StatusCode, vedetteBody.Error.Message + clouddriverBody.Message
}
