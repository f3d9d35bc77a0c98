package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// execTimeout is how long the program of a kubeconfig may take to sign in.
	execTimeout = time.Minute
	// execMinInterval is for how long its failure counts at least, and what it gave, so that
	// a dozen feeds don't run it one after the other.
	execMinInterval = 10 * time.Second
)

// execCredentials are what a kubeconfig's program answered.
type execCredentials struct {
	token   string
	cert    *tls.Certificate // nil where it gave none
	expires time.Time        // zero where it said nothing of that
}

// execAuthenticator runs the program by which a kubeconfig signs in, and keeps what it answered
// until that expires or is refused. It takes the place of client-go's, which runs
// the program without any limit of time and with its lock held, so that one that
// hangs blocks all requests for ever, and the end of this process too. It is safe
// for concurrent use.
type execAuthenticator struct {
	ctx      context.Context // ends the program
	run      func(ctx context.Context) (*execCredentials, error)
	onRotate func() // called when another certificate takes the place of one

	mu       sync.Mutex
	current  *execCredentials
	lastErr  error
	failedAt time.Time
	running  chan struct{} // closed when the program under way has ended; nil where none is
	cert     *tls.Certificate
}

// get returns credentials, or why there are none. It waits for the program at most
// for as long as ctx lasts; the program goes on for others.
func (s *execAuthenticator) get(ctx context.Context) (*execCredentials, error) {
	for {
		s.mu.Lock()
		creds, running, err := s.cachedLocked()
		s.mu.Unlock()
		if running == nil {
			return creds, err
		}
		select {
		case <-running:
		case <-ctx.Done():
			return nil, fmt.Errorf("getting credentials: %w", context.Cause(ctx))
		}
	}
}

// cachedLocked returns what is known, or the run of the program to wait for.
func (s *execAuthenticator) cachedLocked() (*execCredentials, chan struct{}, error) {
	switch {
	case s.ctx.Err() != nil && s.running == nil:
		return nil, nil, fmt.Errorf("getting credentials: %w", s.ctx.Err())
	case s.running != nil:
		return nil, s.running, nil
	case s.current != nil && (s.current.expires.IsZero() || time.Now().Before(s.current.expires)):
		return s.current, nil, nil
	case s.lastErr != nil && time.Since(s.failedAt) < execMinInterval:
		return nil, nil, s.lastErr
	}
	s.running = make(chan struct{})
	go s.refresh()
	return nil, s.running, nil
}

func (s *execAuthenticator) refresh() {
	ctx, cancel := context.WithTimeout(s.ctx, execTimeout)
	defer cancel()
	creds, err := s.run(ctx)
	if soonest := time.Now().Add(execMinInterval); err == nil && !creds.expires.IsZero() && creds.expires.Before(soonest) {
		creds.expires = soonest // this clock may be wrong: the API server judges by its own
	}
	if err != nil {
		err = fmt.Errorf("getting credentials: %w", err)
	}
	if s.store(creds, err) {
		s.onRotate()
	}
}

// store notes how the program ended, and reports whether the certificate changed.
func (s *execAuthenticator) store(creds *execCredentials, err error) (rotated bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.lastErr, s.failedAt = nil, err, time.Now()
	if err == nil {
		s.current = creds
		rotated = s.cert != nil && !sameCertificate(s.cert, creds.cert)
		s.cert = creds.cert
	}
	close(s.running)
	s.running = nil
	return rotated
}

func sameCertificate(a, b *tls.Certificate) bool {
	return a != nil && b != nil && len(a.Certificate) > 0 && len(b.Certificate) > 0 && string(a.Certificate[0]) == string(b.Certificate[0])
}

// wait waits until no program runs.
func (s *execAuthenticator) wait() {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	if running != nil {
		<-running
	}
}

// invalidate says that the API server does not accept credentials. The program is run
// again for the next request.
func (s *execAuthenticator) invalidate(creds *execCredentials) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == creds {
		s.current = nil
	}
}

// certificate is a tls.Config's GetClientCertificate.
func (s *execAuthenticator) certificate(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	creds, err := s.get(info.Context())
	if err != nil {
		return nil, err
	}
	if creds.cert == nil {
		return new(tls.Certificate), nil
	}
	return creds.cert, nil
}

// authRoundTripper signs requests in.
type authRoundTripper struct {
	auth *execAuthenticator
	next http.RoundTripper
}

// RoundTrip sends a request with the token that the program gave.
func (t authRoundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	creds, err := t.auth.get(req.Context())
	if err != nil {
		return nil, &unsentError{err}
	}
	if creds.token != "" && req.Header.Get("Authorization") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+creds.token)
	}
	resp, err := t.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		t.auth.invalidate(creds)
	}
	return resp, err
}

// errInteractive says that nobody is there to be asked.
var errInteractive = errors.New("interactiveMode is Always, and an agent has nobody to ask")
