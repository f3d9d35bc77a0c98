package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestUpstreamMayRequireACertificate asks an upstream Clouddriver with HTTPS that requires a certificate.
func TestUpstreamMayRequireACertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(answerJSON(http.StatusOK, `[{"name":"theirs"}]`))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshakes that fail
	server.StartTLS()
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	certificate := server.TLS.Certificates[0] // any will do
	for _, tt := range []struct {
		name string
		tls  *tls.Config
		ok   bool
	}{
		{"with the authority and a certificate", &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}}, true},
		{"without a certificate", &tls.Config{RootCAs: pool}, false},
		{"without the authority", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.BaseURL, c.TLS = server.URL, tt.tls })
			w.local.answer = answerJSON(http.StatusOK, `[]`)
			merged, body := w.send(t, http.MethodGet, "/credentials", "")
			if (merged.StatusCode == http.StatusOK) != tt.ok || (body == `[{"name":"theirs"}]`) != tt.ok {
				t.Errorf("a merged answer: got %d %s, want success: %t", merged.StatusCode, body, tt.ok)
			}
			if passedOn, body := w.send(t, http.MethodGet, "/subnets", ""); (passedOn.StatusCode == http.StatusOK) != tt.ok {
				t.Errorf("what is passed on: got %d %s, want success: %t", passedOn.StatusCode, body, tt.ok)
			}
		})
	}
}
