package keypair

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// ServerTLS configures a TLS server.
type ServerTLS struct {
	KeyPair    Files
	ClientAuth tls.ClientAuthType
	CAFile     string // PEM file with the authorities of client certificates; required if ClientAuth verifies them
	MinVersion uint16 // 0 means TLS 1.2
}

// ParseClientAuth parses how a server treats client certificates, in any case: none; request; any
// (required, not verified); want or optional (verified if sent); need or require (required and
// verified). "" means none.
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
	return tls.NoClientCert, fmt.Errorf("the mode of client certificates must be none, request, any, want, optional, need or require, got %q",
		word)
}

// VerifiesClientCert reports whether client certificates are verified. This requires a file with
// authorities, because the system's authorities sign certificates for everyone who owns a host
// name.
func VerifiesClientCert(auth tls.ClientAuthType) bool { return auth >= tls.VerifyClientCertIfGiven }

// TLSConfig returns a server's TLS configuration. The certificate and the authorities are reloaded
// when their files change, with effect from the next handshake.
func (s ServerTLS) TLSConfig() (*tls.Config, error) {
	if VerifiesClientCert(s.ClientAuth) && s.CAFile == "" {
		return nil, errors.New("client certificates must be verified, but no file with their authorities is configured")
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
	if pool.state, err = stateOf(s.CAFile); err != nil { // before it is read, so that a later change differs
		return nil, err
	}
	if pool.current, err = LoadCertPool(s.CAFile); err != nil {
		return nil, err
	}
	config.ClientCAs = pool.current
	config.SessionTicketsDisabled = true // because a resumed session would outlive the removal of an authority
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		updated := config.Clone()
		updated.GetConfigForClient = nil
		updated.ClientCAs = pool.reload()
		return updated, nil
	}
	return config, nil
}

// poolFile is a pool of authorities, reloaded when its file changes.
type poolFile struct {
	path string

	mu      sync.Mutex
	current *x509.CertPool
	state   fileState // of the file, from before current was read
}

// reload returns the pool in the file, or the last valid one. It never falls back to the system's
// authorities.
func (p *poolFile) reload() *x509.CertPool {
	p.mu.Lock()
	defer p.mu.Unlock()
	state, err := stateOf(p.path)
	if err != nil || state == p.state {
		return p.current
	}
	if pool, err := LoadCertPool(p.path); err == nil {
		p.current, p.state = pool, state
	}
	return p.current
}
