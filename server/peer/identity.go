package peer

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"time"
)

// Identity is the key of a process, which never leaves it.
type Identity struct {
	certificate tls.Certificate
	key         [32]byte
}

// NewIdentity makes a key, and a certificate that contains it.
func NewIdentity() (*Identity, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of this server for others: %w", err)
	}
	// The certificate is valid for ever, because its only contents that count are the key: the table says how long that is valid.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0),
		NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of this server for others: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of this server for others: %w", err)
	}
	pair := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: certificate}
	return &Identity{certificate: pair, key: KeyOf(certificate)}, nil
}

// Key returns what the table of servers has of the key.
func (i *Identity) Key() [32]byte { return i.key }

// KeyOf returns the SHA-256 of a certificate's public key with its algorithm (SubjectPublicKeyInfo).
func KeyOf(c *x509.Certificate) [32]byte { return sha256.Sum256(c.RawSubjectPublicKeyInfo) }
