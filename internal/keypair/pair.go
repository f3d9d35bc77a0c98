// Package keypair reads certificates and private keys for TLS from files, and reloads them when the
// files change, so that a rotated certificate is used without a restart.
package keypair

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Files names the files of a certificate and its key.
type Files struct {
	Cert     string // PEM: the certificate, then its intermediates
	Key      string // PEM: PKCS#8, PKCS#1 or EC; "" if the key is in Cert
	Password string // of an encrypted PKCS#8 key; "" if it is not encrypted
}

func (f Files) key() string {
	if f.Key == "" {
		return f.Cert
	}
	return f.Key
}

// Pair is a certificate and its key, reloaded when their files change. It is safe for concurrent
// use.
type Pair struct {
	files Files

	mu        sync.Mutex
	current   *tls.Certificate
	fileState fileState
	reloadErr error // why the current files are not used; nil if they are
}

// fileState detects changes of files. Kubernetes updates mounted files by replacing a symbolic
// link, which changes the size and the modification time of the link's target.
type fileState struct {
	cert, key         time.Time
	certSize, keySize int64
}

// Open reads a certificate and its key. Its errors name the file and the problem.
func Open(files Files) (*Pair, error) {
	p := &Pair{files: files}
	state, err := p.readState()
	if err != nil {
		return nil, err
	}
	cert, err := load(files)
	if err != nil {
		return nil, err
	}
	p.current, p.fileState = cert, state
	return p, nil
}

// Certificate returns the certificate and key in the files. If they cannot be read or do not match,
// which happens in the middle of a rotation, it returns the last valid ones.
func (p *Pair) Certificate() *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	state, err := p.readState()
	if err != nil {
		p.reloadErr = err
		return p.current
	}
	if state == p.fileState {
		return p.current
	}
	cert, err := load(p.files)
	p.reloadErr = err
	if err == nil {
		p.current, p.fileState = cert, state
	}
	return p.current
}

// ReloadError returns why the files could not be used when they were last read, or nil. Certificate
// returns the last valid certificate then.
func (p *Pair) ReloadError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reloadErr
}

// Warning returns a message if the certificate has expired, is not valid yet, or expires within a
// week, and "" otherwise. It is only a warning, because the peer decides whether it accepts the
// certificate.
func (p *Pair) Warning(now time.Time) string {
	leaf := p.Certificate().Leaf
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Sprintf("the certificate in %s expired on %s", p.files.Cert, leaf.NotAfter.UTC().Format(time.DateTime))
	case now.Before(leaf.NotBefore):
		return fmt.Sprintf("the certificate in %s is valid only from %s", p.files.Cert, leaf.NotBefore.UTC().Format(time.DateTime))
	case now.Add(7 * 24 * time.Hour).After(leaf.NotAfter):
		return fmt.Sprintf("the certificate in %s expires on %s", p.files.Cert, leaf.NotAfter.UTC().Format(time.DateTime))
	}
	return ""
}

// Describe returns the subject, the issuer and the end of the certificate, for messages.
func (p *Pair) Describe() string {
	leaf := p.Certificate().Leaf
	return fmt.Sprintf("subject %.200q, issued by %.200q, valid from %s to %s", leaf.Subject, leaf.Issuer,
		leaf.NotBefore.UTC().Format(time.DateOnly), leaf.NotAfter.UTC().Format(time.DateOnly))
}

func (p *Pair) readState() (fileState, error) {
	cert, err := stat(p.files.Cert)
	if err != nil {
		return fileState{}, err
	}
	key, err := stat(p.files.key())
	if err != nil {
		return fileState{}, err
	}
	return fileState{cert.ModTime(), key.ModTime(), cert.Size(), key.Size()}, nil
}

func stat(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	return info, describeNotExist(path, err)
}

func read(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	return data, describeNotExist(path, err)
}

// describeNotExist describes a missing file. Other errors of package os already name the file.
func describeNotExist(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the file %s does not exist: %w", path, fs.ErrNotExist)
	}
	return err
}

// LoadCertPool reads authorities from a PEM file.
func LoadCertPool(path string) (*x509.CertPool, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("the file %s contains no certificate in PEM format", path)
	}
	return pool, nil
}
