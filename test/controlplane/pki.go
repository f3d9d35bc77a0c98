//go:build unix

package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

const (
	adminName  = "admin"
	adminGroup = "system:masters"

	// lifetime is how long certificates are valid. They start an hour ago, because clocks differ.
	lifetime = 365 * 24 * time.Hour
)

// pki is a plane's certificate authority and the key that signs the tokens of
// ServiceAccounts.
type pki struct {
	authority *x509.Certificate
	key       *ecdsa.PrivateKey
	caPEM     []byte
	tokenKey  pair       // only the key is used
	machine   netip.Addr // of Options.Kubelet
}

// pair is a certificate and its key in PEM.
type pair struct{ cert, key []byte }

func newPKI(machine netip.Addr) (*pki, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create the certificate authority: %w", err)
	}
	template := newTemplate("vedette-controlplane")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("create the certificate authority: %w", err)
	}
	authority, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("create the certificate authority: %w", err)
	}
	p := &pki{authority: authority, key: key, caPEM: encode("CERTIFICATE", der), machine: machine}
	p.tokenKey, err = p.clientPair("service-accounts")
	return p, err
}

func newTemplate(name string, groups ...string) *x509.Certificate {
	serial := new(big.Int).SetBytes([]byte(rand.Text()[:16]))
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name, Organization: groups},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

// clientPair returns a certificate that identifies a user: the common name is the user, the
// organizations are the groups.
func (p *pki) clientPair(name string, groups ...string) (pair, error) {
	template := newTemplate(name, groups...)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return p.sign(template)
}

// serverPair returns the API server's certificate. Pods know the address of the Service kubernetes.
func (p *pki) serverPair() (pair, error) {
	template := newTemplate("kube-apiserver")
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(serviceAddress)}
	if p.machine.IsValid() {
		template.IPAddresses = append(template.IPAddresses, p.machine.AsSlice())
	}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default.svc"}
	return p.sign(template)
}

// kubeletPair returns the certificate by which the API server knows the kubelet of a node.
func (p *pki) kubeletPair(node string) (pair, error) {
	template := newTemplate(node)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.IPAddresses = []net.IP{p.machine.AsSlice()}
	return p.sign(template)
}

func (p *pki) sign(template *x509.Certificate) (pair, error) {
	name := template.Subject.CommonName
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("create a key for %s: %w", name, err)
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, p.authority, &key.PublicKey, p.key)
	if err != nil {
		return pair{}, fmt.Errorf("sign a certificate for %s: %w", name, err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return pair{}, fmt.Errorf("encode the key of %s: %w", name, err)
	}
	return pair{cert: encode("CERTIFICATE", cert), key: encode("EC PRIVATE KEY", der)}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// write writes the files that the processes and other tools need to a directory.
func (p *pki) write(dir string) error {
	server, err := p.serverPair()
	if err != nil {
		return err
	}
	admin, err := p.clientPair(adminName, adminGroup)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"ca.crt":     p.caPEM,
		"server.crt": server.cert,
		"server.key": server.key,
		"admin.crt":  admin.cert,
		"admin.key":  admin.key,
		"tokens.key": p.tokenKey.key,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("write certificates: %w", err)
		}
	}
	return nil
}

// client returns an HTTP client of a user.
func (p *pki) client(name string, groups ...string) (*http.Client, error) {
	user, err := p.clientPair(name, groups...)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(user.cert, user.key)
	if err != nil {
		return nil, fmt.Errorf("load the certificate of %s: %w", name, err)
	}
	return &http.Client{Transport: p.transport(cert)}, nil
}

// transport returns a transport that trusts the authority and sends the certificates, if any.
func (p *pki) transport(certs ...tls.Certificate) *http.Transport {
	roots := x509.NewCertPool()
	roots.AddCert(p.authority)
	return &http.Transport{
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 16,
		TLSClientConfig:     &tls.Config{RootCAs: roots, Certificates: certs},
	}
}
