package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
)

// TestManagementSettingsAreConverted checks what becomes of the keys of the port for probes.
func TestManagementSettingsAreConverted(t *testing.T) {
	authority := keypairtest.New(t)
	pair := authority.Issue("probes")
	secure := fmt.Sprintf("management.server: {port: 8081, address: '*', ssl: {enabled: true, certFile: 'file:%s', keyFile: %s, cacertFile: %s, clientAuth: %%s}}",
		pair.Cert, pair.Key, authority.File)
	for _, tt := range []struct {
		text, address string
		auth          tls.ClientAuthType
		isTLS         bool
		fails         string
	}{
		{"server.port: 7002", "", 0, false, ""},
		{"management.server.port: 8081", "127.0.0.1:8081", 0, false, ""},
		{"management.server.port: -1", "", 0, false, ""},
		{"management: {server: {port: 8081, address: 10.0.0.1}}", "10.0.0.1:8081", 0, false, ""},
		{fmt.Sprintf(secure, "none"), ":8081", tls.NoClientCert, true, ""},
		{fmt.Sprintf(secure, "want"), ":8081", tls.VerifyClientCertIfGiven, true, ""},
		{"management.server: {port: 1, ssl: {enabled: true, certFile: /no/cert}}", "127.0.0.1:1", 0, false, "management.server.ssl: the file /no/cert does not exist"},
		{"management.server: {ssl: {enabled: true, certFile: /no/cert}}", "", 0, false, ""},
	} {
		settings, err := newServerConfig(loadText(t, tt.text), slog.New(slog.DiscardHandler))
		if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("%s: got %v, want %q", tt.text, err, tt.fails)
			continue
		}
		got := settings.Management
		if got.Address != tt.address || (got.TLS != nil) != tt.isTLS || tt.isTLS && got.TLS.ClientAuth != tt.auth {
			t.Errorf("%s: got %+v", tt.text, got)
		}
	}
}

// TestEffectiveSettingsDescribePorts checks what `check --effective` says about ports, and that it masks secrets.
func TestEffectiveSettingsDescribePorts(t *testing.T) {
	authority := keypairtest.New(t)
	pair := authority.Issue("server")
	text := fmt.Sprintf("server.ssl: {enabled: true, certFile: %[1]s, keyFile: %[2]s, keyPassword: hunter2, cacertFile: %[3]s, clientAuth: need}\n"+
		"grpc: {server.security: {enabled: true, certificateChain: %[1]s, privateKey: %[2]s, clientAuth: REQUIRE, trustCertCollection: %[3]s, protocols: [TLSv1.3]}, "+
		"auth.x509: {enabled: true, filters: ['CN=agent .*']}}\nmanagement.server.port: 8081\nprometheus.enabled: true\npprof.enabled: true\n", pair.Cert, pair.Key, authority.File)
	cfg := loadText(t, text)
	got := strings.Join(cfg.Connections(), "\n")
	for _, want := range []string{
		"port for REST: all addresses, 7002, TLS 1.2 or later, client certificates required, signed by an authority in " + authority.File,
		"port for agents: all addresses, 9091, TLS 1.3, client certificates required, signed by an authority in " + authority.File + ", with a subject that matches CN=agent .*, certificate " + pair.Cert + `, subject "CN=server"`,
		"port for probes and metrics (management): 127.0.0.1:8081, plain text, no client certificates",
		"port for metrics: 127.0.0.1:8008, plain text, no client certificates",
		"port for profiles: 127.0.0.1:6060, TLS 1.2 or later, client certificates required",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %s", got, want)
		}
	}
	if strings.Contains(got, "hunter2") {
		t.Errorf("got the password in\n%s", got)
	}
	said := strings.Join(running(t.Context(), loadText(t, strings.Replace(text, "management.server.port: 8081\n", "", 1))), "\n")
	if !strings.Contains(said, "its port 7002 requires client certificates: set management.server.port") {
		t.Errorf("got %s", said)
	}
}
