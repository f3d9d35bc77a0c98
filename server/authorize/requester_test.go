package authorize

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/admin"
	"github.com/vedette-io/vedette/server/readlimit"
)

// TestClaimsDoNotReplaceProof checks that nothing that a request claims takes the place of what it proves.
func TestClaimsDoNotReplaceProof(t *testing.T) {
	trusted, err := readlimit.ParseTrustedCallers([]string{"gate.example.org", "10.9.0.0/16"})
	if err != nil {
		t.Fatal(err)
	}
	ann := &x509.Certificate{Subject: pkix.Name{CommonName: "ann", Organization: []string{"shop"}}}
	gate := &x509.Certificate{Subject: pkix.Name{CommonName: "gate.example.org"}}
	spiffe := &x509.Certificate{URIs: []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/orca"}}, SerialNumber: big.NewInt(7)}
	const token = "0123456789abcdef"
	for _, tt := range []struct {
		what        string
		certificate *x509.Certificate
		unverified  bool
		address     string
		headers     map[string]string
		want        vedette.Requester
	}{
		{what: "nothing", want: vedette.Requester{User: "anonymous", Address: "10.0.0.1"}},
		{what: "a claim", headers: map[string]string{"X-Spinnaker-User": " bob "}, want: vedette.Requester{User: "bob", Claimed: "bob", Address: "10.0.0.1"}},
		{what: "a certificate", certificate: ann, want: vedette.Requester{User: "ann", Proven: "certificate CN=ann,O=shop", Address: "10.0.0.1"}},
		{what: "a claim beside a certificate", certificate: ann, headers: map[string]string{"X-Spinnaker-User": "bob"},
			want: vedette.Requester{User: "ann", Claimed: "bob", Proven: "certificate CN=ann,O=shop", Address: "10.0.0.1"}},
		{what: "a certificate that was not verified", certificate: ann, unverified: true, headers: map[string]string{"X-Spinnaker-User": "bob"},
			want: vedette.Requester{User: "bob", Claimed: "bob", Address: "10.0.0.1"}},
		{what: "headers of Orca beside a certificate", certificate: ann, headers: map[string]string{"X-Spinnaker-User": "bob", "X-Spinnaker-Execution-Id": "01J"},
			want: vedette.Requester{User: "ann", Claimed: "bob", Proven: "certificate CN=ann,O=shop", Service: "orca", Address: "10.0.0.1"}},
		{what: "headers of Orca beside the user's own certificate", certificate: ann,
			headers: map[string]string{"X-Spinnaker-User": "ann", "X-Spinnaker-Execution-Id": "01J"},
			want:    vedette.Requester{User: "ann", Claimed: "ann", Proven: "certificate CN=ann,O=shop", Address: "10.0.0.1"}},
		{what: "a trusted service", certificate: gate, headers: map[string]string{"X-Spinnaker-User": "bob"},
			want: vedette.Requester{User: "bob", Claimed: "bob", Proven: "certificate CN=gate.example.org", Service: "gate.example.org", Address: "10.0.0.1"}},
		{what: "a trusted service of itself", certificate: gate,
			want: vedette.Requester{User: "gate.example.org", Proven: "certificate CN=gate.example.org", Service: "gate.example.org", Address: "10.0.0.1"}},
		{what: "a trusted address", address: "10.9.1.1", headers: map[string]string{"X-Spinnaker-User": "bob", "X-Spinnaker-Execution-Id": "01J"},
			want: vedette.Requester{User: "bob", Claimed: "bob", Service: "orca", Address: "10.9.1.1"}},
		{what: "a certificate from a trusted address", certificate: ann, address: "10.9.1.1", headers: map[string]string{"X-Spinnaker-User": "bob"},
			want: vedette.Requester{User: "ann", Claimed: "bob", Proven: "certificate CN=ann,O=shop", Address: "10.9.1.1"}},
		{what: "a trusted service from a trusted address", certificate: gate, address: "10.9.1.1", headers: map[string]string{"X-Spinnaker-User": "bob"},
			want: vedette.Requester{User: "bob", Claimed: "bob", Proven: "certificate CN=gate.example.org", Service: "gate.example.org", Address: "10.9.1.1"}},
		{what: "a certificate that was not verified, from a trusted address", certificate: ann, unverified: true, address: "10.9.1.1",
			headers: map[string]string{"X-Spinnaker-User": "bob"},
			want:    vedette.Requester{User: "bob", Claimed: "bob", Service: "10.9.1.1", Address: "10.9.1.1"}},
		{what: "the token from a trusted address", address: "10.9.1.1",
			headers: map[string]string{"Authorization": "Bearer " + token, "X-Spinnaker-User": "bob"},
			want:    vedette.Requester{User: "server.adminToken", Claimed: "bob", Proven: "token server.adminToken", Address: "10.9.1.1"}},
		{what: "Orca without a certificate", headers: map[string]string{"X-Spinnaker-User": "bob", "X-Spinnaker-Execution-Id": "01J"},
			want: vedette.Requester{User: "bob", Claimed: "bob", Service: "orca", Address: "10.0.0.1"}},
		{what: "Gate without a certificate", headers: map[string]string{"X-Spinnaker-User": "bob", "X-Spinnaker-User-Origin": "deck"},
			want: vedette.Requester{User: "bob", Claimed: "bob", Service: "gate", Address: "10.0.0.1"}},
		{what: "a name without subject", certificate: spiffe,
			want: vedette.Requester{User: "spiffe://example.org/orca", Proven: "certificate spiffe://example.org/orca", Address: "10.0.0.1"}},
		{what: "the token", headers: map[string]string{"Authorization": "Bearer " + token, "X-Spinnaker-User": "bob"},
			want: vedette.Requester{User: "server.adminToken", Claimed: "bob", Proven: "token server.adminToken", Address: "10.0.0.1"}},
		{what: "another token", headers: map[string]string{"Authorization": "Bearer " + token + "0"}, want: vedette.Requester{User: "anonymous", Address: "10.0.0.1"}},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "10.0.0.1:4000"
		if tt.address != "" {
			r.RemoteAddr = tt.address + ":4000"
		}
		if tt.certificate != nil {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{tt.certificate}}
			if !tt.unverified {
				r.TLS.VerifiedChains = [][]*x509.Certificate{{tt.certificate}}
			}
		}
		for name, value := range tt.headers {
			r.Header.Set(name, value)
		}
		var got vedette.Requester
		inner := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = CallerOf(r).Requester })
		trusted.Handler(MarkToken(admin.Guard{Token: token}, inner)).ServeHTTP(httptest.NewRecorder(), r)
		if got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.what, got, tt.want)
		}
	}
}
