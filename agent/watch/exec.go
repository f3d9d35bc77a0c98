package watch

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
	// execLimit is how long the program of a kubeconfig may take to sign in.
	execLimit = time.Minute
	// execPause is for how long its failure counts at least, and what it gave, so that
	// a dozen feeds don't run it one after the other.
	execPause = 10 * time.Second
)

// execCredentials are what a kubeconfig's program answered.
type execCredentials struct {
	token   string
	cert    *tls.Certificate // nil where it gave none
	expires time.Time        // zero where it said nothing of that
}

// signIn runs the program by which a kubeconfig signs in, and keeps what it answered
// until that expires or is refused. It takes the place of client-go's, which runs
// the program without any limit of time and with its lock held, so that one that
// hangs blocks all requests for ever, and the end of this process too. It is safe
// for concurrent use.
type signIn struct {
	ctx     context.Context // ends the program
	run     func(ctx context.Context) (*execCredentials, error)
	rotated func() // called when another certificate takes the place of one

	mu      sync.Mutex
	current *execCredentials
	failure error
	failed  time.Time
	running chan struct{} // closed when the program under way has ended; nil where none is
	cert    *tls.Certificate
}

// get returns credentials, or why there are none. It waits for the program at most
// for as long as ctx lasts; the program goes on for others.
func (s *signIn) get(ctx context.Context) (*execCredentials, error) {
	for {
		s.mu.Lock()
		creds, running, err := s.nowLocked()
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

// nowLocked returns what is known, or the run of the program to wait for.
func (s *signIn) nowLocked() (*execCredentials, chan struct{}, error) {
	switch {
	case s.ctx.Err() != nil && s.running == nil:
		return nil, nil, fmt.Errorf("getting credentials: %w", s.ctx.Err())
	case s.running != nil:
		return nil, s.running, nil
	case s.current != nil && (s.current.expires.IsZero() || time.Now().Before(s.current.expires)):
		return s.current, nil, nil
	case s.failure != nil && time.Since(s.failed) < execPause:
		return nil, nil, s.failure
	}
	s.running = make(chan struct{})
	go s.refresh()
	return nil, s.running, nil
}

func (s *signIn) refresh() {
	ctx, cancel := context.WithTimeout(s.ctx, execLimit)
	defer cancel()
	creds, err := s.run(ctx)
	if soonest := time.Now().Add(execPause); err == nil && !creds.expires.IsZero() && creds.expires.Before(soonest) {
		creds.expires = soonest // this clock may be wrong: the API server judges by its own
	}
	if err != nil {
		err = fmt.Errorf("getting credentials: %w", err)
	}
	if s.keep(creds, err) {
		s.rotated()
	}
}

// keep notes how the program ended, and reports whether the certificate changed.
func (s *signIn) keep(creds *execCredentials, err error) (rotated bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.failure, s.failed = nil, err, time.Now()
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
func (s *signIn) wait() {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	if running != nil {
		<-running
	}
}

// refused says that the API server does not accept credentials. The program is run
// again for the next request.
func (s *signIn) refused(creds *execCredentials) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == creds {
		s.current = nil
	}
}

// certificate is a tls.Config's GetClientCertificate.
func (s *signIn) certificate(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	creds, err := s.get(info.Context())
	if err != nil {
		return nil, err
	}
	if creds.cert == nil {
		return new(tls.Certificate), nil
	}
	return creds.cert, nil
}

// signing signs requests in.
type signing struct {
	s    *signIn
	next http.RoundTripper
}

// RoundTrip sends a request with the token that the program gave.
func (t signing) RoundTrip(req *http.Request) (*http.Response, error) {
	creds, err := t.s.get(req.Context())
	if err != nil {
		return nil, &unsentError{err}
	}
	if creds.token != "" && req.Header.Get("Authorization") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+creds.token)
	}
	resp, err := t.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		t.s.refused(creds)
	}
	return resp, err
}

// errInteractive says that nobody is there to be asked.
var errInteractive = errors.New("interactiveMode is Always, and an agent has nobody to ask")
