package middleware

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestForeignHostNamesAreRefused(t *testing.T) {
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
		handler := GuardHost(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }), address, []string{"vedette.intern", "other.intern:8443"})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/credentials", nil)
		r.Host = tt.host
		handler.ServeHTTP(httptest.NewRecorder(), r)
		if called != tt.allowed {
			t.Errorf("%s: %q on %s: got passed %t", tt.name, tt.host, tt.listenAddress, called)
		}
	}
}
