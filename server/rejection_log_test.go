package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/logbuffer"
)

// awaitLine returns the first line that contains all parts. It waits, because the server may log a
// rejection shortly after the client has noticed it.
func awaitLine(t *testing.T, l *logbuffer.Buffer, parts ...string) string {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if lines := l.Lines(parts...); len(lines) > 0 {
			return lines[0]
		}
	}
	t.Fatalf("no log line with %q:\n%s", parts, strings.Join(l.Lines(), ""))
	return ""
}

// testCA is a certificate authority.
type testCA struct {
	t      *testing.T
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	usages []x509.ExtKeyUsage // of what it issues
}

func newTestCA(t *testing.T, name string) testCA {
	s := testCA{t: t, usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	_, s.cert, s.key = s.issue(name, time.Now().Add(time.Hour), true)
	return s
}

// issue returns a new certificate that expires at end.
func (s testCA) issue(name string, end time.Time, authority bool) (tls.Certificate, *x509.Certificate, *ecdsa.PrivateKey) {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: end.Add(-2 * time.Hour), NotAfter: end, IsCA: authority, BasicConstraintsValid: true,
		ExtKeyUsage: s.usages}
	parent, signingKey := s.cert, s.key
	if parent == nil {
		parent, signingKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signingKey)
	if err != nil {
		s.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: cert}, cert, key
}

// leafFor is like leaf, for one usage only.
func (s testCA) leafFor(usage x509.ExtKeyUsage, name string, end time.Time) tls.Certificate {
	s.usages = []x509.ExtKeyUsage{usage}
	return s.leaf(name, end)
}

func (s testCA) leaf(name string, end time.Time) tls.Certificate {
	cert, _, _ := s.issue(name, end, false)
	return cert
}

func (s testCA) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.cert)
	return pool
}

// startLoggedServer starts a server whose log can be read.
func startLoggedServer(t *testing.T, cfg Config) (*Server, *logbuffer.Buffer) {
	t.Helper()
	logs := &logbuffer.Buffer{}
	s, err := Listen(cfg, slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	awaitHealth(t, s, isHealthy)
	return s, logs
}

// checkHealth calls the gRPC health service.
func checkHealth(t *testing.T, s *Server, creds credentials.TransportCredentials) error {
	t.Helper()
	conn, err := grpc.NewClient(s.GRPC().String(), grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

// TestRefusedAgentsAreLogged connects agents that a server with TLS must refuse, and checks the log
// line of each.
func TestRefusedAgentsAreLogged(t *testing.T) {
	later := time.Now().Add(time.Hour)
	ca, foreign := newTestCA(t, "ca"), newTestCA(t, "foreign")
	client := func(certs ...tls.Certificate) *tls.Config {
		return &tls.Config{RootCAs: ca.pool(), Certificates: certs, MinVersion: tls.VersionTLS12}
	}
	untrusting := client(ca.leaf("agent", later))
	untrusting.RootCAs = foreign.pool()
	// Send the certificate even though the server's list of authorities does not contain its
	// issuer.
	foreignClient := client()
	foreignCert := foreign.leaf("stranger", later)
	foreignClient.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &foreignCert, nil }
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			for _, tt := range []struct {
				name   string
				creds  credentials.TransportCredentials
				reason []string // empty if the agent is accepted
			}{
				{"a good certificate", credentials.NewTLS(client(ca.leaf("agent", later))), nil},
				{"no certificate", credentials.NewTLS(client()), []string{"sent no client certificate", "clouddriver.tls.clientCertFile"}},
				{"a foreign certificate", credentials.NewTLS(foreignClient), []string{"CN=stranger", "grpc.server.security.trustCertCollection"}},
				{"an expired certificate", credentials.NewTLS(client(ca.leaf("old", time.Now().Add(-time.Hour)))), []string{"CN=old", "is valid only from"}},
				{"a certificate for servers", credentials.NewTLS(client(ca.leafFor(x509.ExtKeyUsageServerAuth, "twin", later))), []string{"CN=twin", "was not issued for clients"}},
				{"plaintext", insecure.NewCredentials(), []string{"does not speak TLS", "clouddriver.insecure"}},
				{"a client that does not trust the server", credentials.NewTLS(untrusting), []string{"does not trust this server's certificate"}},
			} {
				t.Run(tt.name, func(t *testing.T) {
					cfg := config("sqlite:" + filepath.Join(t.TempDir(), "v.db"))
					cfg.GRPCTLS = &tls.Config{Certificates: []tls.Certificate{ca.leaf("server", later)}, ClientCAs: ca.pool(),
						ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: version, MaxVersion: version}
					s, logs := startLoggedServer(t, cfg)
					err := checkHealth(t, s, tt.creds)
					if (err == nil) != (tt.reason == nil) {
						t.Errorf("got error %v", err)
					}
					if tt.reason == nil {
						if rejected := logs.Lines("level=WARN"); len(rejected) > 0 {
							t.Errorf("unexpected log lines %q", rejected)
						}
						return
					}
					line := awaitLine(t, logs, append(tt.reason, "level=WARN", "agent connection refused", "peer=127.0.0.1:")...)
					if rejected := logs.Lines("agent connection refused"); len(rejected) != 1 {
						t.Errorf("got log lines %q, want only %q", rejected, line)
					}
				})
			}
		})
	}
}

func TestTLSAgentAtPlaintextPort(t *testing.T) {
	s, logs := startLoggedServer(t, config("sqlite:"+filepath.Join(t.TempDir(), "v.db")))
	if err := checkHealth(t, s, insecure.NewCredentials()); err != nil {
		t.Error(err)
	}
	if err := checkHealth(t, s, credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})); err == nil {
		t.Error("a plaintext port accepted TLS")
	}
	awaitLine(t, logs, "level=WARN", "the agent speaks TLS, but this port is plaintext")
}

// TestSubjectsAreRefusedByName checks that a subject that no filter accepts is a reason of its own, with
// what to do.
func TestSubjectsAreRefusedByName(t *testing.T) {
	rejected := vedette.Errorf(vedette.Denied, "the subject matches no filter: add one")
	if kind, reason := classifyHandshakeError(rejected); kind != "certificate subject" || reason != rejected.Error() {
		t.Errorf("got %q, %q", kind, reason)
	}
}

// TestHealthChecksAreNotLogged opens and closes connections, as load balancers do.
func TestHealthChecksAreNotLogged(t *testing.T) {
	ca := newTestCA(t, "ca")
	cfg := config("sqlite:" + filepath.Join(t.TempDir(), "v.db"))
	cfg.GRPCTLS = &tls.Config{Certificates: []tls.Certificate{ca.leaf("server", time.Now().Add(time.Hour))}, MinVersion: tls.VersionTLS12}
	s, logs := startLoggedServer(t, cfg)
	conn, err := net.Dial("tcp", s.GRPC().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := checkHealth(t, s, credentials.NewTLS(&tls.Config{RootCAs: ca.pool(), MinVersion: tls.VersionTLS12})); err != nil {
		t.Error(err)
	}
	if found := logs.Lines("level=WARN"); len(found) > 0 {
		t.Errorf("unexpected log lines %q", found)
	}
}

// TestReasonsOfCertificatesAreApart checks that one agent's reason does not suppress another's on the same
// host, and that what a client chooses does not make a reason of its own.
func TestReasonsOfCertificatesAreApart(t *testing.T) {
	reject := func(subject string, cause error) string {
		cert := &x509.Certificate{Subject: pkix.Name{CommonName: subject}}
		if invalid, ok := errors.AsType[x509.CertificateInvalidError](cause); ok {
			invalid.Cert = cert
			cause = invalid
		}
		kind, _ := classifyHandshakeError(&tls.CertificateVerificationError{UnverifiedCertificates: []*x509.Certificate{cert}, Err: cause})
		return kind
	}
	seen := map[string]bool{}
	for _, cause := range []error{x509.UnknownAuthorityError{}, x509.CertificateInvalidError{Reason: x509.Expired},
		x509.CertificateInvalidError{Reason: x509.IncompatibleUsage}, x509.CertificateInvalidError{Reason: x509.CANotAuthorizedForThisName},
		x509.CertificateInvalidError{Reason: x509.TooManyIntermediates}} {
		kind := reject("a", cause)
		if seen[kind] {
			t.Errorf("%v has the kind %q of another reason", cause, kind)
		}
		seen[kind] = true
		if other := reject("b", cause); other != kind {
			t.Errorf("%v: got the kinds %q and %q for two subjects", cause, kind, other)
		}
	}
}

func TestRefusalLogIsRateLimited(t *testing.T) {
	r, now := newRejectionLog(discardLogger), time.Now()
	logged := 0
	for range 1000 {
		if _, ok := r.shouldLog(rejectionKey{"10.0.0.1", "none"}, now); ok {
			logged++
		}
	}
	if logged != 1 {
		t.Errorf("one host was logged %d times at once", logged)
	}
	if _, ok := r.shouldLog(rejectionKey{"10.0.0.1", "plaintext"}, now); !ok {
		t.Error("another reason of the same host was not logged")
	}
	if suppressed, ok := r.shouldLog(rejectionKey{"10.0.0.1", "none"}, now.Add(rejectionInterval)); !ok || suppressed != 999 {
		t.Errorf("after a minute: got logged %v with %d suppressed", ok, suppressed)
	}
	logged = 0
	for i := range 5 * maxRejections {
		if _, ok := r.shouldLog(rejectionKey{fmt.Sprint("host-", i), "none"}, now); ok {
			logged++
		}
	}
	if logged > maxRejections+1 || len(r.entries) > maxRejections+1 {
		t.Errorf("%d hosts: got %d lines and %d entries", 5*maxRejections, logged, len(r.entries))
	}
	if _, ok := r.shouldLog(rejectionKey{"host-late", "none"}, now.Add(2*rejectionInterval)); !ok {
		t.Error("a new host was not logged after the other hosts were quiet")
	}
}
