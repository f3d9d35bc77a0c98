package kube

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestEndOfCredentialsIsRead reads when the credentials of kubeconfigs end.
func TestEndOfCredentialsIsRead(t *testing.T) {
	token := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	file := filepath.Join(t.TempDir(), "token")
	mustSucceed(t, os.WriteFile(file, []byte(token(`{"iat":1000,"exp":4600}`)+"\n"), 0o600))
	begin, end := time.Unix(2000, 0), time.Unix(9000, 0)
	cert, _ := keyPairFrom(t, begin, end)
	for _, tt := range []struct {
		name string
		cfg  rest.Config
		want string // what, begin and end as Unix times
	}{
		{"no credentials", rest.Config{}, ""},
		{"a password", rest.Config{Username: "u", Password: "p"}, ""},
		{"a token without claims", rest.Config{BearerToken: "secret"}, ""},
		{"a token that is not JSON", rest.Config{BearerToken: token("{")}, ""},
		{"a token that does not end", rest.Config{BearerToken: token(`{"iat":1000}`)}, ""},
		{"a token that ends at an impossible time", rest.Config{BearerToken: token(`{"exp":1e300}`)}, ""},
		{"a token that ends", rest.Config{BearerToken: token(`{"iat":1000,"exp":4600.5}`)}, "the token 1000 4600"},
		{"a token that was issued after its end", rest.Config{BearerToken: token(`{"iat":5000,"exp":4600}`)}, "the token -62135596800 4600"},
		{"a token in a file", rest.Config{BearerToken: "stale", BearerTokenFile: file}, "the token 1000 4600"},
		{"a file that is gone", rest.Config{BearerTokenFile: file + "2"}, ""},
		{"a certificate", rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: cert}}, "the client certificate 2000 9000"},
		{"a certificate that is broken", rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: cert[:len(cert)/2]}}, ""},
		{"both", rest.Config{BearerToken: token(`{"exp":4600}`), TLSClientConfig: rest.TLSClientConfig{CertData: cert}}, "the token -62135596800 4600"},
		{"both, the certificate first", rest.Config{BearerToken: token(`{"exp":9999}`), TLSClientConfig: rest.TLSClientConfig{CertData: cert}},
			"the client certificate 2000 9000"},
	} {
		c := &Cluster{access: usedAccess{cfg: &tt.cfg}}
		got := ""
		if e := c.CredentialsEnd(); e.What != "" {
			got = fmt.Sprintf("%s %d %d", e.What, e.Begin.Unix(), e.End.Unix())
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestCredentialsEndIsOfTheCredentialsInUse checks that a renewed certificate counts only when it is in use.
func TestCredentialsEndIsOfTheCredentialsInUse(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		t.Helper()
		mustSucceed(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		return filepath.Join(dir, name)
	}
	cert, key := keyPairFrom(t, time.Unix(2000, 0), time.Unix(9000, 0))
	kubeconfig := fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"+
		"clusters: [{name: a, cluster: {server: 'https://x'}}]\nusers: [{name: a, user: {client-certificate: %q, client-key: %q}}]\n",
		write("user.crt", cert), write("user.key", key))
	c, err := Connect(Access{KubeconfigContents: kubeconfig}, Options{})
	mustSucceed(t, err)
	t.Cleanup(c.Close)
	cert, key = keyPairFrom(t, time.Unix(8000, 0), time.Unix(99000, 0))
	write("user.crt", cert)
	write("user.key", key)
	if end := c.CredentialsEnd().End.Unix(); end != 9000 {
		t.Errorf("got %d before the rotation, want 9000", end)
	}
	_, err = c.Rotate(t.Context(), Access{KubeconfigContents: kubeconfig}, func(context.Context, *Cluster) error { return nil })
	mustSucceed(t, err)
	if end := c.CredentialsEnd().End.Unix(); end != 99000 {
		t.Errorf("got %d after the rotation, want 99000", end)
	}
}

func keyPairFrom(t *testing.T, begin, end time.Time) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	mustSucceed(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: begin, NotAfter: end}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	mustSucceed(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	mustSucceed(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func mustSucceed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
