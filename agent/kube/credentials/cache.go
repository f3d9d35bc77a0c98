// Package credentials gets credentials of clusters that expire, from exec plugins and from clouds, and keeps them.
package credentials

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"time"
)

const (
	// timeout is how long an exec plugin may run.
	timeout = time.Minute
	// minInterval is how long its result is kept at least, errors included, so that a
	// dozen feeds do not run it one after the other.
	minInterval = 10 * time.Second
	// skewedInterval is how long credentials are kept that have expired, by this machine's clock,
	// when they are issued. The clock is wrong then, and the API server decides by its own: it is
	// better to send them than to run the plugin without end.
	skewedInterval = time.Minute
)

// Credentials are what an exec plugin or a cloud has returned.
type Credentials struct {
	Token   string
	cert    *tls.Certificate // nil if there is none
	expires time.Time        // zero if unknown
	// replace is when new ones are got while these are still used, so that no request waits for them; zero for not before expires.
	replace time.Time
}

// isDue reports whether new credentials should be got although these have not expired.
func (c *Credentials) isDue(now time.Time) bool { return !c.replace.IsZero() && now.After(c.replace) }

// Cache runs an exec plugin, or asks a cloud for a token, and keeps the credentials until
// they expire or are rejected. It replaces client-go's authenticator, because that one runs the plugin
// without a time limit while it holds a lock: a plugin that hangs blocks all requests and
// the shutdown of the process. It is safe for concurrent use.
type Cache struct {
	ctx      context.Context //nolint:containedctx // ends the plugin, which outlives the request that has started it
	run      func(ctx context.Context) (*Credentials, error)
	onRotate func() // called when the client certificate changed

	mu       sync.Mutex
	current  *Credentials
	lastErr  error
	failedAt time.Time     // when the last run ended, also without an error
	running  chan struct{} // closed when the running plugin has ended; nil if none runs
	cert     *tls.Certificate
}

// New returns a cache of what run returns. When ctx ends, what runs ends, and run is not called any more. onRotate is called when
// the client certificate has changed.
func New(ctx context.Context, run func(ctx context.Context) (*Credentials, error), onRotate func()) *Cache {
	return &Cache{ctx: ctx, run: run, onRotate: onRotate}
}

// Get returns credentials. It waits for the plugin until ctx ends. The plugin then keeps
// running for other callers.
func (s *Cache) Get(ctx context.Context) (*Credentials, error) {
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
func (s *Cache) cachedLocked() (*Credentials, chan struct{}, error) {
	now := time.Now()
	switch {
	case s.current != nil && (s.current.expires.IsZero() || now.Before(s.current.expires)):
		if s.current.isDue(now) && s.running == nil && s.ctx.Err() == nil && now.Sub(s.failedAt) >= minInterval {
			s.startLocked()
		}
		return s.current, nil, nil // also after the end: operations that have begun may need several requests
	case s.running != nil:
		return nil, s.running, nil
	case s.ctx.Err() != nil:
		return nil, nil, fmt.Errorf("getting credentials: %w", s.ctx.Err())
	case s.lastErr != nil && now.Sub(s.failedAt) < minInterval:
		return nil, nil, s.lastErr
	}
	s.startLocked()
	return nil, s.running, nil
}

func (s *Cache) startLocked() {
	s.running = make(chan struct{})
	go s.refresh()
}

func (s *Cache) refresh() {
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
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
	switch soonest := now.Add(minInterval); {
	case expires.IsZero():
		return expires
	case !expires.After(now):
		return now.Add(skewedInterval)
	case expires.Before(soonest):
		return soonest
	}
	return expires
}

// store stores the result of the plugin and reports whether the certificate changed.
func (s *Cache) store(creds *Credentials, err error) (rotated bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastErr = err
	s.failedAt = time.Now()
	if s.current != nil && err != nil && !s.current.expires.IsZero() && !time.Now().Before(s.current.expires) {
		s.current = nil
	}
	if err == nil { // otherwise those from before are used as long as they last
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

// Wait waits until the plugin does not run.
func (s *Cache) Wait() {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	if running != nil {
		<-running
	}
}

// Invalidate drops credentials that the API server rejected. The next request runs the
// plugin again.
func (s *Cache) Invalidate(creds *Credentials) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == creds {
		s.current = nil
	}
}

// Certificate implements tls.Config.GetClientCertificate.
func (s *Cache) Certificate(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	creds, err := s.Get(info.Context())
	if err != nil {
		return nil, err
	}
	if creds.cert == nil {
		return new(tls.Certificate), nil
	}
	return creds.cert, nil
}
