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
	// execTimeout is how long an exec plugin may run.
	execTimeout = time.Minute
	// execMinInterval is how long its result is kept at least, errors included, so that a
	// dozen feeds do not run it one after the other.
	execMinInterval = 10 * time.Second
	// execSkewedInterval is how long credentials are kept that have expired, by this machine's clock,
	// when they are issued. The clock is wrong then, and the API server decides by its own: it is
	// better to send them than to run the plugin without end.
	execSkewedInterval = time.Minute
)

// execCredentials are the credentials that an exec plugin or Google returned.
type execCredentials struct {
	token   string
	cert    *tls.Certificate // nil if it returned none
	expires time.Time        // zero if unknown
}

// execAuthenticator runs an exec plugin, or asks Google for a token, and keeps the credentials until
// they expire or are rejected. It replaces client-go's authenticator, because that one runs the plugin
// without a time limit while it holds a lock: a plugin that hangs blocks all requests and
// the shutdown of the process. It is safe for concurrent use.
type execAuthenticator struct {
	ctx      context.Context // ends the plugin
	run      func(ctx context.Context) (*execCredentials, error)
	onRotate func() // called when the client certificate changed

	mu       sync.Mutex
	current  *execCredentials
	lastErr  error
	failedAt time.Time
	running  chan struct{} // closed when the running plugin has ended; nil if none runs
	cert     *tls.Certificate
}

// get returns credentials. It waits for the plugin until ctx ends. The plugin then keeps
// running for other callers.
func (s *execAuthenticator) get(ctx context.Context) (*execCredentials, error) {
	for {
		s.mu.Lock()
		creds, running, err := s.cachedLocked() //nolint:contextcheck // the plugin outlives the request, because others wait for it
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

// cachedLocked returns the cached result, or the channel of the run to wait for.
func (s *execAuthenticator) cachedLocked() (*execCredentials, chan struct{}, error) {
	switch {
	case s.running != nil:
		return nil, s.running, nil
	case s.current != nil && (s.current.expires.IsZero() || time.Now().Before(s.current.expires)):
		return s.current, nil, nil // also after the end: operations that have begun may need several requests
	case s.ctx.Err() != nil:
		return nil, nil, fmt.Errorf("getting credentials: %w", s.ctx.Err())
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
	if err != nil {
		err = fmt.Errorf("getting credentials: %w", err)
	} else {
		creds.expires = keptUntil(creds.expires, time.Now())
	}
	if s.store(creds, err) {
		s.onRotate()
	}
}

// keptUntil returns until when credentials are used that expire at some time by this machine's
// clock, which may be wrong. The zero time means until they are rejected.
func keptUntil(expires, now time.Time) time.Time {
	switch soonest := now.Add(execMinInterval); {
	case expires.IsZero():
		return expires
	case !expires.After(now):
		return now.Add(execSkewedInterval)
	case expires.Before(soonest):
		return soonest
	}
	return expires
}

// store stores the result of the plugin and reports whether the certificate changed.
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

// wait waits until the plugin does not run.
func (s *execAuthenticator) wait() {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	if running != nil {
		<-running
	}
}

// invalidate drops credentials that the API server rejected. The next request runs the
// plugin again.
func (s *execAuthenticator) invalidate(creds *execCredentials) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == creds {
		s.current = nil
	}
}

// certificate implements tls.Config.GetClientCertificate.
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

// authRoundTripper adds the credentials of an exec plugin to requests.
type authRoundTripper struct {
	auth *execAuthenticator
	next http.RoundTripper
}

// RoundTrip sends a request with the plugin's token.
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

var errInteractive = errors.New("interactiveMode is Always, but an agent has no terminal")
