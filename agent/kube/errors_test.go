package kube_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/test/ports"
)

// certificate returns a self-signed certificate for hosts.
func certificate(t *testing.T, name string, until time.Time, hosts ...net.IP) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IPAddresses: hosts}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// tlsServer returns the URL of a server with a fixed response. It uses TLS if cert is not nil.
func tlsServer(t *testing.T, cert *tls.Certificate, code int, body string) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}))
	if cert == nil {
		s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
		t.Cleanup(s.Close)
		s.Start()
		return s.URL
	}
	serveTLS(t, s, *cert)
	return s.URL
}

func serveTLS(t *testing.T, s *httptest.Server, cert tls.Certificate) {
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	t.Cleanup(s.Close)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.StartTLS()
}

// silentServer returns an address that accepts connections and never responds.
func silentServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return "https://" + l.Addr().String()
}

func TestIdentifyErrorsNameTheCause(t *testing.T) {
	local := net.IPv4(127, 0, 0, 1)
	tomorrow, yesterday := time.Now().Add(24*time.Hour), time.Now().Add(-24*time.Hour)
	good, goodCA := certificate(t, "good", tomorrow, local)
	_, otherCA := certificate(t, "another", tomorrow, local)
	old, oldCA := certificate(t, "old", yesterday, local)
	elsewhere, elsewhereCA := certificate(t, "elsewhere", tomorrow, net.IPv4(10, 0, 0, 1))
	plain := tlsServer(t, nil, 200, "{}")
	for _, tt := range []struct {
		name string
		url  string
		ca   []byte
		kind vedette.ErrorKind
		want []string
	}{
		{"nothing listens", "https://" + ports.Unused(t), goodCA, vedette.Unavailable, []string{"nothing listens at https://127.0.0.1:"}},
		{"no such name", "https://no-such-host.invalid:6443", goodCA, vedette.Unavailable, []string{"cannot be resolved", "no-such-host.invalid"}},
		{"the wrong CA", tlsServer(t, &good, 200, "{}"), otherCA, vedette.Invalid, []string{`"CN=good" issued by "CN=good"`, "certificate-authority-data (CN=another)"}},
		{"this machine's CAs", tlsServer(t, &good, 200, "{}"), nil, vedette.Invalid, []string{`"CN=good"`, "this machine's CAs"}},
		{"an expired certificate", tlsServer(t, &old, 200, "{}"), oldCA, vedette.Unavailable, []string{"has expired"}},
		{"a certificate for another host", tlsServer(t, &elsewhere, 200, "{}"), elsewhereCA, vedette.Invalid, []string{"other names", "tls-server-name"}},
		{"HTTP where TLS is meant", strings.Replace(plain, "http:", "https:", 1), goodCA, vedette.Invalid, []string{"answers in plain HTTP"}},
		{"TLS where HTTP is meant", strings.Replace(tlsServer(t, &good, 200, "{}"), "https:", "http:", 1), nil, vedette.Invalid, []string{"https://"}},
		{"an expired token", tlsServer(t, &good, 401, `{"kind":"Status","message":"Unauthorized","code":401}`), goodCA, vedette.Denied, []string{"has expired", "renew it"}},
		{"RBAC", tlsServer(t, &good, 403, `{"kind":"Status","message":"no","reason":"Forbidden","code":403}`), goodCA, vedette.Denied, []string{"RBAC", "no"}},
		{"a sign-in page", tlsServer(t, &good, 302, "<html>"), goodCA, vedette.Invalid, []string{"redirects elsewhere"}},
		{"an HTML page instead of JSON", tlsServer(t, &good, 200, "<html>"), goodCA, vedette.Unavailable, []string{"an HTML page"}},
		{"a proxy without a server behind it", tlsServer(t, &good, 502, "bad gateway"), goodCA, vedette.Unavailable, []string{"502", "bad gateway"}},
		{"silence", silentServer(t), goodCA, vedette.Unavailable, []string{"did not respond in time"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := kube.Connect(kube.Access{KubeconfigContents: kubetest.Kubeconfig(tt.url, tt.ca)}, kube.Options{})
			must(t, err)
			defer c.Close()
			limit := time.Minute
			if tt.name == "silence" {
				limit = time.Second / 2
			}
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			_, _, err = c.Identify(ctx)
			if vedette.KindOf(err) != tt.kind {
				t.Errorf("got kind %q, want %q: %v", vedette.KindOf(err), tt.kind, err)
			}
			for _, want := range tt.want {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("got error %q, want it to contain %q", err, want)
				}
			}
		})
	}
}

func TestUnusableKubeconfigsAreExplained(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	twoContexts := write("two", "apiVersion: v1\nkind: Config\ncontexts: [{name: b, context: {cluster: c, user: u}}, {name: a, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://x'}}]\nusers: [{name: u, user: {token: t}}]\n")
	withUser := func(user string) string {
		return "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://x'}}]\nusers: [{name: u, user: " + user + "}]\n"
	}
	for _, tt := range []struct {
		name   string
		access kube.Access
		want   string
	}{
		{"missing file", kube.Access{KubeconfigFile: dir + "/none"}, "kubeconfig file " + dir + "/none does not exist"},
		{"not YAML", kube.Access{KubeconfigFile: write("junk", "\x00{")}, "read kubeconfig file"},
		{"empty file", kube.Access{KubeconfigFile: write("empty", "")}, "has no contexts"},
		{"no context chosen", kube.Access{KubeconfigFile: twoContexts}, "choose one of its contexts (a and b)"},
		{"an unknown context", kube.Access{KubeconfigFile: twoContexts, Context: "c"}, `has no context "c": it has a and b`},
		{"missing exec plugin", kube.Access{KubeconfigContents: []byte(withUser("{exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin, interactiveMode: Never}}"))}, `exec plugin "no-such-plugin"`},
		{"a plugin that client-go no longer has", kube.Access{KubeconfigContents: []byte(withUser("{auth-provider: {name: gcp}}"))}, "gcp"},
		{"invalid certificate", kube.Access{KubeconfigContents: []byte(withUser("{client-certificate-data: eA==, client-key-data: eA==}"))}, "use the credentials for https://x"},
		{"outside a cluster", kube.Access{InCluster: true}, "serviceAccount works only inside a cluster"},
	} {
		_, err := kube.Connect(tt.access, kube.Options{})
		if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want it to contain %q", tt.name, err, tt.want)
		}
	}
	for name, access := range map[string]kube.Access{
		"a context by name":    {KubeconfigFile: twoContexts, Context: "b"},
		"insecure, with a CA":  {KubeconfigContents: kubetest.Kubeconfig("https://x", []byte("not looked at")), Insecure: true},
		"without a proxy":      {KubeconfigFile: twoContexts, Context: "a", NoProxy: true},
		"contents before file": {KubeconfigFile: dir + "/none", KubeconfigContents: kubetest.Kubeconfig("https://x", nil)},
	} {
		if _, err := kube.Connect(access, kube.Options{}); err != nil {
			t.Errorf("%s: got error %v, want none", name, err)
		}
	}
}
