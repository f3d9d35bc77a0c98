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
		why, listenAddress, host string
		allowed                  bool
	}{
		{"an address", loopback, "127.0.0.1:7002", true},
		{"an address without a port", loopback, "127.0.0.1", true},
		{"an address of six", "[::1]:7002", "[::1]:7002", true},
		{"an address of six without a port", "[::1]:7002", "[::1]", true},
		{"as port-forward is called", loopback, "localhost:7002", true},
		{"in any case", loopback, "LocalHost.:80", true},
		{"no name, which no browser sends", loopback, "", true},
		{"a name that may resolve to 127.0.0.1", loopback, "evil.example:7002", false},
		{"the same elsewhere", "127.0.0.9:7002", "evil.example", false},
		{"a name that only looks like it", loopback, "localhost.evil.example:7002", false},
		{"an address that is none", loopback, "127.0.0.1.evil.example", false},
		{"a Service's name", loopback, "spin-clouddriver:7002", false},
		{"a name that was listed", loopback, "Vedette.Intern:443", true},
		{"with a port", loopback, "other.intern", true},
		{"a Service's name where others can connect", all, "spin-clouddriver.spinnaker:7002", true},
		{"on one address too", "10.0.0.1:7002", "anything.example", true},
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
			t.Errorf("%s: %q on %s: passed %t", tt.why, tt.host, tt.listenAddress, called)
		}
	}
}

// TestDNSRebindingIsRejected sends to a server that runs what a browser would send for a
// page whose name has become 127.0.0.1: to the browser nothing is cross-origin.
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
			t.Errorf("%s by a name that was listed: %d %s", path, code, body)
		}
	}
}

// postWithHost returns the message of an error, in whichever form it is.
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
		t.Errorf("%s: %v in %s", path, err, raw)
	}
	return response.StatusCode, vedetteBody.Error.Message + clouddriverBody.Message
}
