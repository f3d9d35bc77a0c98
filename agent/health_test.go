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

// newAgent returns an agent with one account, whose cluster does not exist.
func newAgent(t *testing.T) *Agent {
	t.Helper()
	return New(Config{Uplink: uplink.Config{Target: "passthrough:///nowhere.invalid:1", Creds: insecure.NewCredentials(), Agent: "a"},
		Accounts: []Account{{Name: "prod", Access: kube.Access{KubeconfigFile: "/nowhere/kubeconfig"}}}}, slog.New(slog.DiscardHandler))
}

// TestHealthHidesDetailsFromUntrustedCallers checks that everyone sees whether the agent is
// healthy, but only callers on this machine or with a trusted certificate see why not.
func TestHealthHidesDetailsFromUntrustedCallers(t *testing.T) {
	a := newAgent(t)
	a.accounts.get("prod").setState("reaching", vedette.Errorf(vedette.Unavailable, "10.1.2.3 does not answer"))
	trusted := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{}}}}
	for _, tt := range []struct {
		name, from, host string
		tls              *tls.ConnectionState
		wantDetails      bool
	}{
		{"a probe at the pod's address", "10.0.0.1:4711", "10.0.0.2:8082", nil, false},
		{"this machine", "127.0.0.1:4711", "127.0.0.1:8082", nil, true},
		{"this machine by name", "[::1]:4711", "localhost:8082", nil, true},
		{"this machine by an IPv4-mapped address", "[::ffff:127.0.0.1]:4711", "localhost", nil, true},
		{"a page in this machine's browser", "127.0.0.1:4711", "evil.example:8082", nil, false},
		{"a trusted certificate", "10.0.0.1:4711", "agent:8082", trusted, true},
		{"an unverified certificate", "10.0.0.1:4711", "agent:8082", &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}, false},
	} {
		for _, path := range []string{"/health", "/health/readiness"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr, r.Host, r.TLS = tt.from, tt.host, tt.tls
			w := httptest.NewRecorder()
			Handler(a, a.log).ServeHTTP(w, r)
			body := w.Body.String()
			if w.Code != http.StatusServiceUnavailable || !strings.Contains(body, `"status":"DOWN"`) {
				t.Errorf("%s: got %d %s, want 503", tt.name, w.Code, body)
			}
			if hasDetails := strings.Contains(body, "10.1.2.3") && strings.Contains(body, "prod") && strings.Contains(body, "not connected yet"); hasDetails != tt.wantDetails || !hasDetails && len(body) > 20 {
				t.Errorf("%s: got %s, want details %v", tt.name, body, tt.wantDetails)
			}
		}
	}
}

// TestLivenessIgnoresServerAndClusters checks that an agent is alive while its own loops
// run, without a server or a cluster.
func TestLivenessIgnoresServerAndClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t)
		alive := func() bool {
			w := httptest.NewRecorder()
			Handler(a, a.log).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/health/liveness", nil))
			return w.Code == http.StatusOK
		}
		if !alive() {
			t.Error("before Run: got not alive, want alive")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.runLivenessLoop(ctx) }()
		time.Sleep(time.Hour)
		if !alive() {
			t.Error("without a server: got not alive, want alive")
		}
		cancel()
		<-done
		time.Sleep(30 * time.Second)
		if !alive() {
			t.Error("after half a minute without CPU time: got not alive, want alive")
		}
		time.Sleep(time.Minute)
		if alive() {
			t.Error("with stopped loops: got alive, want not alive")
		}
	})
}
