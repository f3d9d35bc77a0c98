package settings

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
)

// TestPortsSayHowClientsAreVerified checks what is said about ports with each mode of client certificates.
func TestPortsSayHowClientsAreVerified(t *testing.T) {
	pair := keypairtest.New(t).Issue("server")
	cert, key := pair.Cert, pair.Key
	secure := SSL{Enabled: true, CertFile: "file:" + cert, KeyFile: key, CACertFile: "/ca"}
	for _, tt := range []struct {
		auth, want string
		ssl        SSL
	}{
		{"need", "port for REST: all addresses, 7002, plain text, no client certificates", SSL{}},
		{"none", "all addresses, 7002, TLS 1.2 or later, no client certificates, certificate " + cert + ", subject", secure},
		{"request", "client certificates asked for, but neither required nor verified", secure},
		{"any", "client certificates required, but not verified: everyone can make one", secure},
		{"want", "client certificates not required, and verified by the authorities in /ca if they are sent", secure},
		{"need", "client certificates required, signed by an authority in /ca, certificate " + cert, secure},
		{"need", "certificate not usable: the file /no/cert does not exist", SSL{Enabled: true, CertFile: "/no/cert", CACertFile: "/ca"}},
	} {
		tt.ssl.ClientAuth = tt.auth
		if got := tt.ssl.Port("REST", ":7002").String(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.auth, got, tt.want)
		}
	}
	port := secure.Port("agents", "10.0.0.1:9091")
	port.MinVersion, port.Also = tls.VersionTLS13, ", and more"
	if got := port.String(); !strings.Contains(got, "port for agents: 10.0.0.1:9091, TLS 1.3, no client certificates, and more, certificate") {
		t.Errorf("got %q", got)
	}
}
