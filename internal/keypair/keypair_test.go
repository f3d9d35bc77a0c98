package keypair

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/youmark/pkcs8"
)

// authority is a certificate authority for tests.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	return authority{sign(t, template, template, key.Public(), key), key}
}

func sign(t *testing.T, template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// leaf returns a certificate that expires at end.
func (a authority) leaf(t *testing.T, name string, key crypto.Signer, end time.Time) *x509.Certificate {
	t.Helper()
	return sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: end.Add(-2000 * time.Hour), NotAfter: end,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key.Public(), a.key)
}

func certPEM(certs ...*x509.Certificate) (out []byte) {
	for _, c := range certs {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out
}

func keyPEM(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func write(t *testing.T, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// touch moves the modification time of files ahead, because the clock of the file system may be
// coarse.
func touch(t *testing.T, ahead time.Duration, paths ...string) {
	t.Helper()
	at := time.Now().Add(ahead)
	for _, path := range paths {
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// writePair writes a certificate and its key to a directory.
func (a authority) writePair(t *testing.T, dir, name string) Files {
	t.Helper()
	key := newKey(t)
	return Files{
		Cert: write(t, filepath.Join(dir, name+".crt"), certPEM(a.leaf(t, name, key, time.Now().Add(1000*time.Hour)))),
		Key:  write(t, filepath.Join(dir, name+".key"), keyPEM(t, key)),
	}
}

func TestPrivateKeyFormats(t *testing.T) {
	ca, dir := newAuthority(t, "ca"), t.TempDir()
	ec := newKey(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecDER, err := x509.MarshalECPrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := pkcs8.MarshalPrivateKey(ec, []byte("hunter2"), nil)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	legacy := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED"}, Bytes: []byte("x")})
	params := block("EC PARAMETERS", []byte("x"))
	tests := []struct {
		name     string
		key      crypto.Signer
		file     []byte
		password string
		err      string
	}{
		{"PKCS#8", ec, keyPEM(t, ec), "", ""},
		{"PKCS#8 with RSA", rsaKey, keyPEM(t, rsaKey), "", ""},
		{"PKCS#1", rsaKey, block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)), "", ""},
		{"EC with parameters, as written by openssl", ec, append(params, block("EC PRIVATE KEY", ecDER)...), "", ""},
		{"encrypted PKCS#8", ec, block("ENCRYPTED PRIVATE KEY", encrypted), "hunter2", ""},
		{"wrong password", ec, block("ENCRYPTED PRIVATE KEY", encrypted), "hunter3", "cannot be decrypted with the configured password"},
		{"no password", ec, block("ENCRYPTED PRIVATE KEY", encrypted), "", "it is encrypted, but no password is configured"},
		{"legacy encryption", rsaKey, legacy, "hunter2", "convert it with openssl pkcs8 -topk8"},
		{"not PEM", ec, []byte("nonsense"), "", "contains no private key in PEM format"},
		{"damaged", ec, block("PRIVATE KEY", []byte("x")), "", "read the key in"},
		{"key of another certificate", ec, keyPEM(t, newKey(t)), "", "does not belong to the first certificate in"},
		{"key of another type", ec, keyPEM(t, rsaKey), "", "does not belong to the first certificate in"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cert := certPEM(ca.leaf(t, "x", tt.key, time.Now().Add(time.Hour)), ca.cert)
			pair, err := Open(Files{Cert: write(t, filepath.Join(dir, "c"), cert), Key: write(t, filepath.Join(dir, "k"), tt.file), Password: tt.password})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if n := len(pair.Certificate().Certificate); n != 2 {
				t.Errorf("got %d certificates, want the chain of 2", n)
			}
		})
	}
}

func TestCertificateErrorsNameTheFile(t *testing.T) {
	ca, dir := newAuthority(t, "ca"), t.TempDir()
	files := ca.writePair(t, dir, "x")
	junk := write(t, filepath.Join(dir, "junk"), []byte("junk"))
	for name, tt := range map[string]struct {
		files Files
		want  string
	}{
		"no certificate":          {Files{Cert: filepath.Join(dir, "absent"), Key: files.Key}, "absent does not exist"},
		"no key":                  {Files{Cert: files.Cert, Key: filepath.Join(dir, "absent")}, "absent does not exist"},
		"not PEM":                 {Files{Cert: junk, Key: files.Key}, "junk contains no certificate in PEM format"},
		"key missing in one file": {Files{Cert: files.Cert}, "x.crt contains no private key in PEM format"},
	} {
		if _, err := Open(tt.files); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	if _, err := LoadCertPool(junk); err == nil || !strings.Contains(err.Error(), "contains no certificate in PEM format") {
		t.Errorf("LoadCertPool: got %v", err)
	}
}

func TestKeyAndCertificateInOneFile(t *testing.T) {
	ca, key := newAuthority(t, "ca"), newKey(t)
	both := append(keyPEM(t, key), certPEM(ca.leaf(t, "x", key, time.Now().Add(time.Hour)))...)
	if _, err := Open(Files{Cert: write(t, filepath.Join(t.TempDir(), "both.pem"), both)}); err != nil {
		t.Error(err)
	}
}

func TestDescriptionNamesSubjectAndValidity(t *testing.T) {
	files := newAuthority(t, "ca").writePair(t, t.TempDir(), "agent")
	pair, err := Open(files)
	if err != nil {
		t.Fatal(err)
	}
	want := `subject "CN=agent", issued by "CN=ca", valid from ` + pair.Certificate().Leaf.NotBefore.UTC().Format("2006-01-02")
	if got := pair.Describe(); !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRotationIsNoticed(t *testing.T) {
	ca, dir := newAuthority(t, "ca"), t.TempDir()
	files := ca.writePair(t, dir, "x")
	pair, err := Open(files)
	if err != nil {
		t.Fatal(err)
	}
	first := pair.Certificate()

	next := ca.writePair(t, t.TempDir(), "x")
	copyFile(t, next.Cert, files.Cert)
	touch(t, time.Minute, files.Cert)
	if pair.Certificate() != first {
		t.Error("after half a rotation: got the new certificate")
	}
	copyFile(t, next.Key, files.Key)
	touch(t, time.Minute, files.Key)
	second := pair.Certificate()
	if second == first {
		t.Error("after the rotation: got the old certificate")
	}
	if err := os.Remove(files.Key); err != nil {
		t.Fatal(err)
	}
	if pair.Certificate() != second {
		t.Error("after a file was removed: got another certificate")
	}
}

// TestRotationWithTheSameTimeIsNoticed replaces files by others of the same size and modification time, as programs
// do that copy times, and file systems whose clock is coarse.
func TestRotationWithTheSameTimeIsNoticed(t *testing.T) {
	ca, dir := newAuthority(t, "ca"), t.TempDir()
	files := ca.writePair(t, dir, "x")
	authorities := write(t, filepath.Join(dir, "ca.crt"), padded(certPEM(ca.cert)))
	replace := func(next Files, authority []byte) {
		for from, to := range map[string]string{next.Cert: files.Cert, next.Key: files.Key} {
			data, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			write(t, to, padded(data))
		}
		write(t, authorities, padded(authority))
		at := time.Unix(1_700_000_000, 0)
		for _, path := range []string{files.Cert, files.Key, authorities} {
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	replace(ca.writePair(t, t.TempDir(), "x"), certPEM(ca.cert))
	config, err := ServerTLS{KeyPair: files, CAFile: authorities, ClientAuth: tls.RequireAndVerifyClientCert}.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	inUse := func() (*tls.Certificate, *x509.CertPool) {
		current, err := config.GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := current.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return cert, current.ClientCAs
	}
	first, firstCAs := inUse()
	other := newAuthority(t, "ca")
	replace(ca.writePair(t, t.TempDir(), "x"), certPEM(other.cert))
	if second, secondCAs := inUse(); second == first || secondCAs.Equal(firstCAs) {
		t.Errorf("got the certificate from before: %t, the authorities from before: %t", second == first, secondCAs.Equal(firstCAs))
	}
}

// padded makes files with certificates equally long. Text around a PEM block means nothing.
func padded(text []byte) []byte { return append(text, bytes.Repeat([]byte("\n"), 4096-len(text))...) }

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, data)
}

func TestExpiringCertificatesAreWarnedAbout(t *testing.T) {
	ca, dir := newAuthority(t, "ca"), t.TempDir()
	now := time.Now()
	for _, tt := range []struct {
		end  time.Time
		want string
	}{
		{now.Add(-time.Hour), "expired on"},
		{now.Add(24 * time.Hour), "expires on"},
		{now.Add(3000 * time.Hour), "valid only from"},
		{now.Add(1000 * time.Hour), ""},
	} {
		key := newKey(t)
		pair, err := Open(Files{
			Cert: write(t, filepath.Join(dir, "c"), certPEM(ca.leaf(t, "x", key, tt.end))),
			Key:  write(t, filepath.Join(dir, "k"), keyPEM(t, key)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := pair.Warning(now); !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("expiring %s: got %q, want %q", tt.end, got, tt.want)
		}
	}
}

// handshake connects a client to a server, and returns the client's name as the server sees it.
func handshake(t *testing.T, client, server *tls.Config) (string, error) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	name := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			name <- ""
			return
		}
		defer conn.Close()
		clientName := ""
		if conn.(*tls.Conn).Handshake() == nil {
			if certs := conn.(*tls.Conn).ConnectionState().PeerCertificates; len(certs) > 0 {
				clientName = certs[0].Subject.CommonName
			}
			_, _ = conn.Write([]byte("x"))
		}
		name <- clientName
	}()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", listener.Addr().String(), client)
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, 1)) // with TLS 1.3 a rejected client gets the error on its first read
		conn.Close()
	}
	return <-name, err
}

func TestOnlyTrustedCertificatesAreAccepted(t *testing.T) {
	ca, other, dir := newAuthority(t, "ca"), newAuthority(t, "other"), t.TempDir()
	caFile := write(t, filepath.Join(dir, "ca.crt"), certPEM(ca.cert))
	otherFile := write(t, filepath.Join(dir, "other.crt"), certPEM(other.cert))
	clientCAs := write(t, filepath.Join(dir, "clients.crt"), certPEM(ca.cert))
	server, err := ServerTLS{KeyPair: ca.writePair(t, dir, "server"), ClientAuth: tls.RequireAndVerifyClientCert, CAFile: clientCAs}.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	agent, otherAgent := ca.writePair(t, dir, "agent"), other.writePair(t, dir, "stranger")
	for _, tt := range []struct {
		scenario string
		client   ClientTLS
		name     string
		accepted bool
	}{
		{"both certificates valid", ClientTLS{ServerName: "server", CAFile: caFile, KeyPair: agent}, "agent", true},
		{"no client certificate", ClientTLS{ServerName: "server", CAFile: caFile}, "", false},
		{"a stranger", ClientTLS{ServerName: "server", CAFile: caFile, KeyPair: otherAgent}, "", false},
		{"another server name", ClientTLS{ServerName: "elsewhere", CAFile: caFile, KeyPair: agent}, "", false},
		{"unknown authority of the server", ClientTLS{ServerName: "server", CAFile: otherFile, KeyPair: agent}, "", false},
		{"unknown authority with SkipVerify", ClientTLS{SkipVerify: true, KeyPair: agent}, "agent", true},
	} {
		config, err := tt.client.TLSConfig()
		if err != nil {
			t.Fatal(err)
		}
		name, err := handshake(t, config, server)
		if (err == nil) != tt.accepted || tt.accepted && name != tt.name {
			t.Errorf("%s: got %q, error %v", tt.scenario, name, err)
		}
	}

	t.Run("the authority is replaced", func(t *testing.T) {
		write(t, clientCAs, certPEM(other.cert))
		touch(t, time.Minute, clientCAs)
		config, err := ClientTLS{ServerName: "server", CAFile: caFile, KeyPair: otherAgent}.TLSConfig()
		if err != nil {
			t.Fatal(err)
		}
		if name, err := handshake(t, config, server); err != nil || name != "stranger" {
			t.Errorf("got %q, error %v", name, err)
		}
		config, err = (ClientTLS{ServerName: "server", CAFile: caFile, KeyPair: agent}).TLSConfig()
		if err != nil {
			t.Fatal(err)
		}
		if name, err := handshake(t, config, server); err == nil {
			t.Errorf("%q was accepted with a certificate of the removed authority", name)
		}
	})

	t.Run("the client's certificate is reloaded", func(t *testing.T) {
		write(t, clientCAs, append(certPEM(other.cert), certPEM(ca.cert)...))
		touch(t, 2*time.Minute, clientCAs)
		config, err := ClientTLS{ServerName: "server", CAFile: caFile, KeyPair: agent}.TLSConfig()
		if err != nil {
			t.Fatal(err)
		}
		copyFile(t, otherAgent.Cert, agent.Cert)
		copyFile(t, otherAgent.Key, agent.Key)
		touch(t, time.Minute, agent.Cert, agent.Key)
		if name, err := handshake(t, config, server); err != nil || name != "stranger" {
			t.Errorf("got %q, error %v", name, err)
		}
	})
}

func TestParseClientAuth(t *testing.T) {
	for word, want := range map[string]tls.ClientAuthType{
		"": tls.NoClientCert, "NONE": tls.NoClientCert, "optional": tls.VerifyClientCertIfGiven, "REQUIRE": tls.RequireAndVerifyClientCert,
		"want": tls.VerifyClientCertIfGiven, "need": tls.RequireAndVerifyClientCert, "any": tls.RequireAnyClientCert, "request": tls.RequestClientCert,
	} {
		if got, err := ParseClientAuth(word); err != nil || got != want {
			t.Errorf("%q: got %v, error %v", word, got, err)
		}
	}
	if _, err := ParseClientAuth("sure"); err == nil {
		t.Error("an unknown word was accepted")
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
	f.Add([]byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		key, err := parseKey("k", data, "password")
		if (key == nil) == (err == nil) {
			t.Errorf("got %v, %v", key, err)
		}
		if chain, err := parseChain("c", data); err == nil && len(chain) == 0 {
			t.Error("an empty chain was accepted")
		}
	})
}
