// Package keypair reads certificates and private keys for TLS from files, and reloads them when the
// files change, so that a rotated certificate is used without a restart.
//
// docs/decisions/0064 compares it with the packages of gRPC and controller-runtime.
package keypair

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
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
	if err != nil || state == p.fileState {
		return p.current
	}
	if cert, err := load(p.files); err == nil {
		p.current, p.fileState = cert, state
	}
	return p.current
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

// maxFileBytes bounds a file. The authorities of all browsers have less than a MiB.
const maxFileBytes = 16 << 20

// read reads a file as a whole. It does not wait for the writer of a pipe, and does not read a device that never ends: files are read at
// each handshake, and all others would wait with it.
func read(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, describeNotExist(path, err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err //nolint:wrapcheck // it names the file
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory: name a file in it", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file, but a pipe or a device: name a file", path)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		return nil, fmt.Errorf("the file %s is too large for certificates and keys: the maximum is %d MiB", path, maxFileBytes>>20)
	}
	return data, err //nolint:wrapcheck // it names the file
}

// describeNotExist describes a missing file. Other errors of package os already name the file.
func describeNotExist(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the file %s does not exist: %w", path, fs.ErrNotExist)
	}
	return err
}
