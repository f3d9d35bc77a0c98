// Package keypairtest creates certificates for tests: an authority, and certificates that it signs,
// as files.
package keypairtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	File string // with its certificate in PEM
	Pool *x509.CertPool

	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair is a certificate and its key in PEM files.
type Pair struct{ Cert, Key string }

// New returns an authority whose files are deleted when the test ends.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir(), Pool: x509.NewCertPool(), key: newKey(t)}
	template := newTemplate("test authority")
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	check(t, err)
	a.cert, err = x509.ParseCertificate(der)
	check(t, err)
	a.Pool.AddCert(a.cert)
	a.File = a.write("ca.crt", "CERTIFICATE", der)
	return a
}

// Issue returns a certificate for clients, and for servers on 127.0.0.1 and with further host names.
func (a *Authority) Issue(name string, hosts ...string) Pair {
	a.t.Helper()
	key, template := newKey(a.t), newTemplate(name)
	template.IPAddresses, template.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, append([]string{"localhost"}, hosts...)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	check(a.t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	check(a.t, err)
	return Pair{a.write(name+".crt", "CERTIFICATE", der), a.write(name+".key", "PRIVATE KEY", keyDER)}
}

// ServerTLS returns the configuration of a server that requires certificates of the authority.
func (a *Authority) ServerTLS() *tls.Config {
	a.t.Helper()
	pair := a.Issue("server")
	cert, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	check(a.t, err)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, ClientCAs: a.Pool,
		ClientAuth: tls.RequireAndVerifyClientCert}
}

func (a *Authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	check(a.t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return key
}

func newTemplate(name string) *x509.Certificate {
	serial := new(big.Int).SetBytes([]byte(rand.Text()))
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(48 * time.Hour)}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
