package uplink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// tokenProxy is a proxy with TLS that passes requests with the right token on to a server.
type tokenProxy struct {
	accepted string
	status   int // of requests with another token
	mu       sync.Mutex
	seen     []string // the tokens of all requests
}

// start starts the proxy and returns its address and its authority.
func (p *tokenProxy) start(t *testing.T, server string) (address string, pool *x509.CertPool) {
	t.Helper()
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: server})
	forward.Transport, forward.FlushInterval = &http.Transport{Protocols: &h2c}, -1
	forward.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	proxy := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := r.Header.Get("Authorization")
		p.mu.Lock()
		p.seen = append(p.seen, token)
		p.mu.Unlock()
		if token != "Bearer "+p.accepted {
			http.Error(w, "sign in", p.status)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	proxy.EnableHTTP2 = true
	proxy.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	proxy.StartTLS()
	t.Cleanup(proxy.Close)
	pool = x509.NewCertPool()
	pool.AddCert(proxy.Certificate())
	return proxy.Listener.Addr().String(), pool
}

// renewedToken is a tokenSource with one more token after each rejection.
type renewedToken struct {
	mu     sync.Mutex
	tokens []string
}

// Token returns the first token, or an error if there are none.
func (s *renewedToken) Token(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tokens) == 0 {
		return "", errors.New("log in first")
	}
	return s.tokens[0], nil
}

// Rejected drops the first token.
func (s *renewedToken) Rejected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = s.tokens[min(1, len(s.tokens)):]
}

// TestBearerTokenIsRenewedAfterRejection connects through a proxy that accepts one token only. The
// server behind it is a gRPC server without Vedette's services, which shows that a connection
// reached it.
func TestBearerTokenIsRenewedAfterRejection(t *testing.T) {
	const reached, refused = "is a gRPC server but not a Vedette server", "a proxy in front of the server does not accept the bearer token: check clouddriver.auth"
	for name, tt := range map[string]struct {
		status int
		tokens []string
		want   []string // for each connection
	}{
		"accepted":                 {http.StatusUnauthorized, []string{"good"}, []string{reached, reached}},
		"rejected":                 {http.StatusUnauthorized, []string{"old", "good"}, []string{refused, reached, reached}},
		"forbidden":                {http.StatusForbidden, []string{"old", "older", "good"}, []string{refused, refused, reached}},
		"no token":                 {http.StatusUnauthorized, nil, []string{"no bearer token for the server at ", "log in first"}},
		"something else goes awry": {http.StatusBadGateway, []string{"old", "good"}, []string{"502", "502"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := &tokenProxy{accepted: "good", status: tt.status}
			address, pool := proxy.start(t, serveWithoutVedette(t, insecure.NewCredentials()))
			cfg := Config{Target: address, TLS: true, Creds: credentials.NewTLS(&tls.Config{RootCAs: pool}), Token: &renewedToken{tokens: tt.tokens}}
			for i, failure := range failures(t, cfg, len(tt.want)) {
				// The proxy loses the end of a stream that the server resets at once.
				isLost := tt.want[i] == reached && strings.Contains(failure, "without sending trailers")
				if !strings.Contains(failure, tt.want[i]) && !isLost || !strings.Contains(failure, address) {
					t.Errorf("connection %d: got %q, want %q", i, failure, tt.want[i])
				}
			}
			if sent := strings.Join(proxy.seen, " "); strings.Count(sent, "Bearer ") != len(proxy.seen) {
				t.Errorf("got Authorization %q, want bearer tokens", sent)
			}
		})
	}
}

// TestATokenForTLSIsNotSentWithoutTLS checks that a token for a connection with TLS cannot be sent
// in plain text, and that an agent without TLS, for example beside a proxy on the same host, can
// send it.
func TestATokenForTLSIsNotSentWithoutTLS(t *testing.T) {
	token := perRPCToken{source: &renewedToken{tokens: []string{"secret"}}, secure: true}
	if !token.RequireTransportSecurity() {
		t.Error("got a token for TLS that may be sent without TLS")
	}
	address := serveWithoutVedette(t, insecure.NewCredentials())
	cfg := Config{Target: address, Creds: insecure.NewCredentials(), Token: token.source}
	if failure := failures(t, cfg, 1)[0]; !strings.Contains(failure, "not a Vedette server") {
		t.Errorf("without TLS: got %q, want that the server was reached", failure)
	}
	if err := Probe(t.Context(), cfg); err != nil {
		t.Errorf("Probe: got error %v, want none", err)
	}
}
