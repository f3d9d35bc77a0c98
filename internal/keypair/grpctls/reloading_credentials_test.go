package grpctls

import (
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
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/keypair"
)

// newSelfSignedCert returns a certificate that is its own CA.
func newSelfSignedCert(t *testing.T) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server"}, DNSNames: []string{"server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestCAFileIsReloaded checks that a new CA is trusted as soon as it is in the file, and that a
// file that cannot be read changes nothing.
func TestCAFileIsReloaded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func(content []byte) {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first, firstCA := newSelfSignedCert(t)
	second, secondCA := newSelfSignedCert(t)
	write(firstCA)
	creds, err := NewReloadingCredentials(keypair.ClientTLS{ServerName: "server", CAFile: file}.TLSConfig, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	clone := creds.Clone() // as gRPC uses it
	trusts := func(cert tls.Certificate) bool {
		listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		go func() {
			if conn, err := listener.Accept(); err == nil {
				_ = conn.(*tls.Conn).HandshakeContext(t.Context())
				conn.Close()
			}
		}()
		client, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		conn, _, err := clone.ClientHandshake(t.Context(), "server", client)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
	for _, step := range []struct {
		name          string
		file          []byte
		first, second bool
	}{
		{"at first", firstCA, true, false},
		{"both CAs", append(append([]byte{}, firstCA...), secondCA...), true, true},
		{"the second CA only", secondCA, false, true},
		{"an incomplete file", []byte("-----BEGIN"), false, true},
	} {
		write(step.file)
		if got := trusts(first); got != step.first {
			t.Errorf("%s: got trust in the first server %t, want the opposite", step.name, got)
		}
		if got := trusts(second); got != step.second {
			t.Errorf("%s: got trust in the second server %t, want the opposite", step.name, got)
		}
	}
}
