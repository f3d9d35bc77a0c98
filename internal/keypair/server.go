package keypair

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// ServerTLS says how a server shows its identity and whom it lets in.
type ServerTLS struct {
	KeyPair    Files
	ClientAuth tls.ClientAuthType
	CAFile     string // PEM file with those who sign client certificates; needed where ClientAuth checks them
	MinVersion uint16 // 0 for TLS 1.2
}

// ParseClientAuth reads how to treat client certificates, in any case: none, request
// (ask), any (insist on one, whoever signed it), want or optional (check one
// that comes), need or require (insist on a good one). Empty means none.
func ParseClientAuth(word string) (tls.ClientAuthType, error) {
	switch strings.ToLower(word) {
	case "none", "":
		return tls.NoClientCert, nil
	case "request":
		return tls.RequestClientCert, nil
	case "any":
		return tls.RequireAnyClientCert, nil
	case "want", "optional":
		return tls.VerifyClientCertIfGiven, nil
	case "need", "require":
		return tls.RequireAndVerifyClientCert, nil
	}
	return tls.NoClientCert, fmt.Errorf("client certificates are treated as none, request, any, want, need, optional or require say, and %q stands there", word)
}

// VerifiesClientCert reports whether client certificates are checked, for which there must be
// authorities. Those of the system sign certificates for anyone who has a host.
func VerifiesClientCert(auth tls.ClientAuthType) bool { return auth >= tls.VerifyClientCertIfGiven }

// TLSConfig makes a server's TLS configuration. Certificate and authorities follow
// their files: each handshake sees what stands there then.
func (s ServerTLS) TLSConfig() (*tls.Config, error) {
	if VerifiesClientCert(s.ClientAuth) && s.CAFile == "" {
		return nil, errors.New("client certificates are to be checked, and no file with the authorities that sign them is configured")
	}
	pair, err := Open(s.KeyPair)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: max(s.MinVersion, tls.VersionTLS12), ClientAuth: s.ClientAuth}
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return pair.Certificate(), nil
	}
	if s.CAFile == "" {
		return config, nil
	}
	pool := &poolFile{path: s.CAFile}
	if pool.current, err = LoadCertPool(s.CAFile); err != nil {
		return nil, err
	}
	config.ClientCAs = pool.current
	config.SessionTicketsDisabled = true // a resumed session would outlive an authority that was taken away
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		updated := config.Clone()
		updated.GetConfigForClient = nil
		updated.ClientCAs = pool.reload()
		return updated, nil
	}
	return config, nil
}

// poolFile is a pool of authorities that follows its file.
type poolFile struct {
	path string

	mu      sync.Mutex
	current *x509.CertPool
	modTime time.Time // modification time of what current came from; zero at first
}

// reload returns the pool that the file holds, or the last one that it held. It
// never falls back to the system's authorities.
func (p *poolFile) reload() *x509.CertPool {
	p.mu.Lock()
	defer p.mu.Unlock()
	info, err := os.Stat(p.path)
	if err != nil || info.ModTime().Equal(p.modTime) {
		return p.current
	}
	if pool, err := LoadCertPool(p.path); err == nil {
		p.current, p.modTime = pool, info.ModTime()
	}
	return p.current
}
