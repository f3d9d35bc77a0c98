// Package keypair reads certificates and private keys for TLS from files, and reloads them when the
// files change, so that a rotated certificate is used without a restart.
package keypair

import (
	"crypto/sha256"
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

// fileState is a digest of what files contain. Their sizes and times do not show each change: a rotated
// certificate often has the size of the one before, and copies may keep its time. To read the files costs
// little beside a handshake.
type fileState [sha256.Size]byte

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

func (p *Pair) readState() (fileState, error) { return stateOf(p.files.Cert, p.files.key()) }

func stateOf(paths ...string) (fileState, error) {
	sum := sha256.New()
	for _, path := range paths {
		data, err := read(path)
		if err != nil {
			return fileState{}, err
		}
		fmt.Fprintf(sum, "%d ", len(data))
		sum.Write(data)
	}
	return fileState(sum.Sum(nil)), nil
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
