package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/uplink"
)

// newAgent has one account, of a cluster that nobody has.
func newAgent(t *testing.T) *Agent {
	t.Helper()
	return New(Config{Uplink: uplink.Config{Target: "passthrough:///nowhere.invalid:1", Creds: insecure.NewCredentials(), Agent: "a"},
		Accounts: []Account{{Name: "prod", Access: kube.Access{KubeconfigFile: "/nowhere/kubeconfig"}}}}, slog.New(slog.DiscardHandler))
}

// TestHealthHidesDetailsFromUntrustedCallers holds that what is wrong with servers and clusters is
// told on this machine and to those with a trusted certificate, while everybody may
// know whether something is.
func TestHealthHidesDetailsFromUntrustedCallers(t *testing.T) {
	a := newAgent(t)
	a.accounts["prod"].setState("reaching", vedette.Errorf(vedette.Unavailable, "10.1.2.3 does not answer"))
	trusted := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{}}}}
	for _, tt := range []struct {
		why, from, host string
		tls             *tls.ConnectionState
		wantDetails     bool
	}{
		{"a probe at the pod's address", "10.0.0.1:4711", "10.0.0.2:8082", nil, false},
		{"this machine", "127.0.0.1:4711", "127.0.0.1:8082", nil, true},
		{"this machine by name", "[::1]:4711", "localhost:8082", nil, true},
		{"this machine, by an address within another", "[::ffff:127.0.0.1]:4711", "localhost", nil, true},
		{"a page in this machine's browser", "127.0.0.1:4711", "evil.example:8082", nil, false},
		{"a certificate that is trusted", "10.0.0.1:4711", "agent:8082", trusted, true},
		{"one that nobody looked at", "10.0.0.1:4711", "agent:8082", &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}, false},
	} {
		for _, path := range []string{"/health", "/health/readiness"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr, r.Host, r.TLS = tt.from, tt.host, tt.tls
			w := httptest.NewRecorder()
			Handler(a, a.log).ServeHTTP(w, r)
			body := w.Body.String()
			if w.Code != http.StatusServiceUnavailable || !strings.Contains(body, `"status":"DOWN"`) {
				t.Errorf("%s: %d %s", tt.why, w.Code, body)
			}
			if hasDetails := strings.Contains(body, "10.1.2.3") && strings.Contains(body, "prod") && strings.Contains(body, "not connected yet"); hasDetails != tt.wantDetails || !hasDetails && len(body) > 20 {
				t.Errorf("%s: %s", tt.why, body)
			}
		}
	}
}

// TestLivenessIgnoresServerAndClusters holds that an agent is alive for as long as its own
// loops turn, without server and cluster, and no longer.
func TestLivenessIgnoresServerAndClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t)
		alive := func() bool {
			w := httptest.NewRecorder()
			Handler(a, a.log).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/health/liveness", nil))
			return w.Code == http.StatusOK
		}
		if !alive() {
			t.Error("it is not alive before it begins")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.runLivenessLoop(ctx) }()
		time.Sleep(time.Hour)
		if !alive() {
			t.Error("it is not alive without a server")
		}
		cancel()
		<-done
		time.Sleep(30 * time.Second)
		if !alive() {
			t.Error("it is not alive after half a minute without processor time")
		}
		time.Sleep(time.Minute)
		if alive() {
			t.Error("it is alive though its loops stand still")
		}
	})
}
