package config

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
)

func TestX509Settings(t *testing.T) {
	const secured = "grpc.server.security: {enabled: true, certificateChain: c, privateKey: k, clientAuth: REQUIRE, trustCertCollection: t}\n"
	for file, want := range map[string]string{
		secured + "grpc.auth.x509: {enabled: true, filters: ['CN=a.*', 'CN=b']}": "",
		secured + "kubesvc.grpc.auth.x509: {enabled: true, filters: 'CN=a.*'}":   "",
		secured + "grpc.auth.x509: {enabled: false, filters: ['(']}":             "",
		secured + "grpc.auth.x509.enabled: true":                                 `"grpc.auth.x509.filters" is empty: no agent could connect`,
		secured + "grpc.auth.x509: {enabled: true, filters: ['(?=x)']}":          `"grpc.auth.x509.filters"[0] must be a regular expression of RE2`,
		"grpc.auth.x509: {enabled: true, filters: [a]}":                          `"grpc.server.security.clientAuth" is not REQUIRE`,
	} {
		_, err := parse("c.yml", []byte(file), nil)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}

// TestX509Filters checks which subjects filters accept.
func TestX509Filters(t *testing.T) {
	authority := keypairtest.New(t)
	pair := authority.Issue("server")
	for _, tt := range []struct {
		filters  []string
		subject  pkix.Name
		accepted bool
	}{
		{[]string{"CN=agent"}, pkix.Name{CommonName: "agent"}, true},
		{[]string{"CN=agent"}, pkix.Name{CommonName: "agent-of-somebody-else"}, false},
		{[]string{"CN=a|CN=b"}, pkix.Name{CommonName: "b"}, true},
		{[]string{"CN=a|CN=b"}, pkix.Name{CommonName: "bb"}, false},
		{[]string{"x", "CN=a.*,OU=ops"}, pkix.Name{CommonName: "a1", OrganizationalUnit: []string{"ops"}}, true},
		{[]string{"OU=ops,CN=a.*"}, pkix.Name{CommonName: "a1", OrganizationalUnit: []string{"ops"}}, true},
		{[]string{"CN=a,OU=ops"}, pkix.Name{CommonName: "a,OU=ops"}, false},
		{[]string{".*"}, pkix.Name{}, true},
		{[]string{"CN=a"}, pkix.Name{}, false},
	} {
		g := GRPC{Server: GRPCServer{Security: Security{Enabled: true, CertificateChain: pair.Cert, PrivateKey: pair.Key, ClientAuth: "REQUIRE",
			TrustCertCollection: authority.File}}, Auth: GRPCAuth{X509{Enabled: true, Filters: tt.filters}}}
		config, err := g.TLSConfig()
		if err != nil {
			t.Fatal(err)
		}
		current, err := config.GetConfigForClient(nil) // which is what a handshake uses
		if err != nil {
			t.Fatal(err)
		}
		err = current.VerifyConnection(tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: tt.subject}}})
		if (err == nil) != tt.accepted {
			t.Errorf("%q, %s: got %v", tt.filters, tt.subject, err)
		}
		if current.VerifyConnection(tls.ConnectionState{}) == nil {
			t.Errorf("%q: a client without a certificate is accepted", tt.filters)
		}
	}
	g := GRPC{Server: GRPCServer{Security: Security{Enabled: true, CertificateChain: pair.Cert, PrivateKey: pair.Key}}}
	if config, err := g.TLSConfig(); err != nil || config.VerifyConnection != nil {
		t.Errorf("without filters: got %v, want no check of subjects", err)
	}
	if config, err := (GRPC{}).TLSConfig(); config != nil || err != nil {
		t.Errorf("without TLS: got %v, %v", config, err)
	}
}

// TestX509FiltersInHandshakes checks that filters count in the handshakes of a server, and what its
// operators see.
func TestX509FiltersInHandshakes(t *testing.T) {
	authority := keypairtest.New(t)
	pair := authority.Issue("server")
	g := GRPC{Server: GRPCServer{Security: Security{Enabled: true, CertificateChain: pair.Cert, PrivateKey: pair.Key, ClientAuth: "REQUIRE",
		TrustCertCollection: authority.File}}, Auth: GRPCAuth{X509{Enabled: true, Filters: []string{"CN=agent-.*"}}}}
	config, err := g.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]vedette.ErrorKind{"agent-1": "", "other": vedette.Denied} {
		issued := authority.Issue(name)
		cert, err := tls.LoadX509KeyPair(issued.Cert, issued.Key)
		if err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		client := tls.Client(far, &tls.Config{RootCAs: authority.Pool, ServerName: "localhost", Certificates: []tls.Certificate{cert}})
		go func() { _, _ = io.Copy(io.Discard, client) }() // the end of the handshake, or the refusal
		err = tls.Server(near, config).HandshakeContext(t.Context())
		if vedette.KindOf(err) != want || (err != nil) != (want != "") {
			t.Errorf("%s: got %v, want an error of kind %q", name, err, want)
		}
		near.Close()
		far.Close()
	}
}

// TestSecurityOfAgentPortIsConverted checks the files and the versions of TLS of the port for agents.
func TestSecurityOfAgentPortIsConverted(t *testing.T) {
	const secured = "grpc.server.security: {enabled: true, certificateChain: 'file:/c', privateKey: 'file:/k', privateKeyPassword: p, " +
		"clientAuth: REQUIRE, trustCertCollection: /t"
	for text, version := range map[string]uint16{
		secured + "}":                                 tls.VersionTLS12,
		secured + ", protocols: TLSv1.3}":             tls.VersionTLS13,
		secured + ", protocols: [TLSv1.2, TLSv1.3]}":  tls.VersionTLS12,
		secured + ", protocols: [tlsv1.1, TLSv1.3] }": tls.VersionTLS12,
	} {
		c, err := parse("c.yml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		s := c.GRPC.Server.Security
		if got := s.keyPair(); got != (keypair.Files{Cert: "/c", Key: "/k", Password: "p"}) || s.minVersion() != version {
			t.Errorf("%s: got %+v, version %x", text, got, s.minVersion())
		}
	}
}
