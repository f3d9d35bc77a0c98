package uplink

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/vedette-io/vedette/agent/outbox"
)

// TestRefusedCertificateIsExplained connects with certificates that the server refuses. Each
// attempt must say so: neither as if the agent distrusted the server, nor as a broken pipe,
// which is how the end of such a connection may look.
func TestRefusedCertificateIsExplained(t *testing.T) {
	later := time.Now().Add(time.Hour)
	serverCert, serverPool := certificate(t, later)
	expired, expiredPool := certificate(t, time.Now().Add(-time.Hour), "agent")
	unknown, _ := certificate(t, later, "agent")
	serverOnly, serverOnlyPool := certificateFor(t, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, later, "agent")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, tt := range []struct {
			name   string
			client *tls.Certificate // nil for none
			cas    *x509.CertPool   // of the server
			want   string
		}{
			{"expired", &expired, expiredPool, "the server does not accept this agent's certificate (subject x): it has expired"},
			{"an unknown authority", &unknown, serverPool, "the server does not accept this agent's certificate (subject x): it is not signed by an authority that the server trusts"},
			{"for servers only", &serverOnly, serverOnlyPool, "the server does not accept this agent's certificate (subject x): it is not valid for an agent"},
			{"none", nil, serverPool, "the server "},
		} {
			t.Run(tls.VersionName(version)+" "+tt.name, func(t *testing.T) {
				t.Parallel()
				address := serveWithoutVedette(t, credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{serverCert},
					ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: tt.cas, MinVersion: version, MaxVersion: version}))
				cfg := Config{Target: address, TLS: true}
				client := &tls.Config{RootCAs: serverPool}
				if tt.client != nil {
					cfg.Certificate = func() string { return "subject x" }
					client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return tt.client, nil }
				}
				cfg.Creds = credentials.NewTLS(client)
				for _, failure := range failures(t, cfg, 20) {
					missing := strings.Contains(failure, "requires a client certificate")
					if !strings.HasPrefix(failure, address+": "+tt.want) || missing != (tt.client == nil) {
						t.Errorf("got %q, want %q", failure, tt.want)
					}
				}
			})
		}
	}
}

// failures returns the errors of the first n connections.
func failures(t *testing.T, cfg Config, n int) []string {
	t.Helper()
	u := New(cfg, outbox.New(1<<20), nil, nil, slog.New(slog.DiscardHandler))
	r := newRunner(t.Context(), u)
	var found []string
	for i := range n {
		if err := r.open(connectionID(i + 1)); err != nil {
			t.Fatal(err)
		}
		found = append(found, r.endLink((<-r.events).(ended), false).Error())
	}
	return found
}
