package uplink

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/test/ports"
)

// certificate returns a self-signed certificate for names, valid until a time.
func certificate(t *testing.T, until time.Time, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	return certificateFor(t, nil, until, names...)
}

// certificateFor is like certificate, for some usages only.
func certificateFor(t *testing.T, usages []x509.ExtKeyUsage, until time.Time, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until,
		DNSNames: names, ExtKeyUsage: usages, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	if len(names) == 0 {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// serveWithoutVedette runs a gRPC server without our services and returns its address.
func serveWithoutVedette(t *testing.T, creds credentials.TransportCredentials) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.Creds(creds))
	healthpb.RegisterHealthServer(srv, health.NewServer())
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(srv.Stop)
	return l.Addr().String()
}

// TestConnectionErrorsAreExplained connects to servers that people connect to by mistake, and
// checks that the error says what to do.
func TestConnectionErrorsAreExplained(t *testing.T) {
	good, pool := certificate(t, time.Now().Add(time.Hour))
	expired, expiredPool := certificate(t, time.Now().Add(-time.Hour))
	other, otherPool := certificate(t, time.Now().Add(time.Hour), "vedette.example.com")
	trustCreds := func(p *x509.CertPool) credentials.TransportCredentials {
		return credentials.NewTLS(&tls.Config{RootCAs: p})
	}
	serveTLS := func(cert tls.Certificate) string {
		return serveWithoutVedette(t, credentials.NewServerTLSFromCert(&cert))
	}
	mutualTLS := serveWithoutVedette(t, credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{good}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}))
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	plainHTTP := strings.TrimPrefix(web.URL, "http://")
	tests := []struct {
		name    string
		address string
		creds   credentials.TransportCredentials // nil: without TLS
		want    string
	}{
		{"plaintext server, agent with TLS", serveWithoutVedette(t, insecure.NewCredentials()), trustCreds(pool), "does not use TLS; if it is the server's gRPC port"},
		{"TLS server, agent without TLS", serveTLS(good), nil, "expects TLS"},
		{"plain HTTP, agent with TLS", plainHTTP, trustCreds(pool), "9091 is the gRPC port by default"},
		{"plain HTTP, agent without TLS", plainHTTP, nil, "the gRPC port is 9091 by default"},
		{"an unknown CA", serveTLS(good), trustCreds(otherPool), "set clouddriver.tls.cacertFile"},
		{"an expired certificate", serveTLS(expired), trustCreds(expiredPool), "has expired"},
		{"a certificate of another host", serveTLS(other), trustCreds(otherPool), "set clouddriver.tls.serverName"},
		{"a client certificate is missing", mutualTLS, trustCreds(pool), "requires a client certificate"},
		{"closed port", ports.Unused(t), nil, "nothing listens at this address"},
		{"no such host", "nowhere.invalid:9091", nil, "cannot be resolved"},
		{"another gRPC server", serveWithoutVedette(t, insecure.NewCredentials()), nil, "not a Vedette server"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := awaitError(t, tt.address, tt.creds, tt.want)
			if !strings.Contains(got, tt.want) || !strings.Contains(got, tt.address) {
				t.Errorf("got  %s\nwant %q and the address in it", got, tt.want)
			}
		})
	}
}

// awaitError runs an uplink until its error contains want, and returns the last error. It
// takes several attempts, because with TLS 1.3 the end of the connection may overtake the
// alert that explains it.
func awaitError(t *testing.T, target string, creds credentials.TransportCredentials, want string) string {
	t.Helper()
	cfg := Config{Target: target, Creds: creds, TLS: creds != nil, Agent: "a", Backoff: Backoff{BaseDelay: new(10 * time.Millisecond), MaxDelay: new(20 * time.Millisecond)}}
	if creds == nil {
		cfg.Creds = insecure.NewCredentials()
	}
	u := New(cfg, outbox.New(1<<20), nil, nil, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = u.Run(ctx)
	}()
	defer func() { cancel(); <-done }()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			_, err := u.Status()
			return err.Error()
		case <-ticker.C:
			if _, err := u.Status(); err != nil && strings.Contains(err.Error(), want) {
				return err.Error()
			}
		}
	}
}
