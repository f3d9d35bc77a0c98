// Package keypair reads certificates and private keys from files for TLS, and
// reads them again when the files change, so that a rotated certificate counts
// from the next handshake on and nobody restarts anything.
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

// Files names a certificate and its key.
type Files struct {
	Cert     string // PEM: the certificate, then its intermediates
	Key      string // PEM: PKCS#8, PKCS#1 or EC; empty where it stands in Cert
	Password string // of a PKCS#8 key that is encrypted; empty for none
}

func (f Files) key() string {
	if f.Key == "" {
		return f.Cert
	}
	return f.Key
}

// Pair is a certificate with its key that follows its files. It is safe for
// concurrent use.
type Pair struct {
	files Files

	mu        sync.Mutex
	current   *tls.Certificate
	fileState fileState
	reloadErr error // why the files that now stand there are not used; nil where they are
}

// fileState tells whether files have changed. Kubernetes replaces mounted files by
// a link, so that size and time of what the link leads to both change.
type fileState struct {
	cert, key         time.Time
	certSize, keySize int64
}

// Open reads a pair. Its errors name the file and say what is wrong with it.
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

// Certificate returns the pair that the files hold now. While they can't be
// read, or hold a key that does not belong to the certificate, as happens in the
// midst of a rotation, it returns the last good one.
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
	if p.reloadErr = err; err == nil {
		p.current, p.fileState = cert, state
	}
	return p.current
}

// ReloadError returns why the files were not usable when they were last looked at;
// nil where they were. Certificate then goes on with what it had.
func (p *Pair) ReloadError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reloadErr
}

// Warning tells of a certificate that is expired, not valid yet, or ends within
// a week; "" otherwise. The other side decides whether it accepts it.
func (p *Pair) Warning(now time.Time) string {
	leaf := p.Certificate().Leaf
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Sprintf("the certificate in %s expired on %s", p.files.Cert, leaf.NotAfter.UTC().Format(time.DateTime))
	case now.Before(leaf.NotBefore):
		return fmt.Sprintf("the certificate in %s is valid only from %s on", p.files.Cert, leaf.NotBefore.UTC().Format(time.DateTime))
	case now.Add(7 * 24 * time.Hour).After(leaf.NotAfter):
		return fmt.Sprintf("the certificate in %s expires on %s", p.files.Cert, leaf.NotAfter.UTC().Format(time.DateTime))
	}
	return ""
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

// describeNotExist says which file is not there in words; other errors name it already.
func describeNotExist(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the file %s does not exist: %w", path, fs.ErrNotExist)
	}
	return err
}

// LoadCertPool reads the authorities in a PEM file.
func LoadCertPool(path string) (*x509.CertPool, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("the file %s holds no certificate in PEM", path)
	}
	return pool, nil
}
