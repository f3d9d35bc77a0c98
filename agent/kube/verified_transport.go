package kube

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// verifiedTransport sends requests over connections whose cluster is known to be the one that the
// Cluster was identified as. An address does not say which cluster is behind it: a load balancer, a
// proxy or DNS may lead elsewhere each time that a connection is opened. So a new connection carries
// one small request first, which reads the identity, and then those of others.
//
// Before the Cluster is identified, connections are used as they are.
type verifiedTransport struct {
	config *connConfig
	window int
	// identity returns what the cluster must be; nil before it is identified. Its pointer stays the
	// same.
	identity func() (*vedette.Cluster, error)
	// verify reads the identity by requests with ctx, and compares it. It also returns whether the
	// connection carries one request at a time.
	verify func(ctx context.Context) (isHTTP1 bool, err error)
	// connecting holds a token while a connection is opened, so that a dozen feeds that start together
	// do one TLS handshake instead of a dozen.
	connecting chan struct{}

	mu      sync.Mutex
	conns   []*singleConn
	isHTTP1 bool // connections carry one request at a time, so that each request may open one
}

type pinnedConnKey struct{}

// withPinnedConn returns a context whose requests are sent over a connection and no other.
func withPinnedConn(ctx context.Context, c *singleConn) context.Context {
	return context.WithValue(ctx, pinnedConnKey{}, c)
}

// maxConnectingTime is for how long others wait for a new connection before one of them opens another:
// a load balancer may have chosen an API server that hangs.
const maxConnectingTime = 2 * time.Second

// maxConnAttempts is how many new connections a request tries that are lost after they were verified.
const maxConnAttempts = 3

// errConnNotKept means that connections end with the request that reads the identity.
var errConnNotKept = vedette.Errorf(vedette.Unavailable, "the API server, or a proxy before it, closed %d connections after one request each, "+
	"so the agent cannot check to which cluster they lead: allow several requests per connection (keep-alive)", maxConnAttempts)

// RoundTrip sends a request over a verified connection. An error of the verification is an
// unsentError.
func (t *verifiedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if pinned, ok := req.Context().Value(pinnedConnKey{}).(*singleConn); ok {
		return pinned.roundTrip(req)
	}
	for opened := 0; opened < maxConnAttempts; {
		tried, err := t.usable()
		if err != nil {
			return nil, &unsentError{err}
		}
		for _, c := range tried {
			if resp, err := send(c, req); !errors.Is(err, errNoConnection) {
				return resp, err
			}
		}
		unlock, err := t.lockConnecting(req.Context())
		if err != nil {
			return nil, &unsentError{err}
		}
		if t.hasOther(tried) {
			unlock()
			continue
		}
		opened++
		if resp, err := t.roundTripNew(req, unlock); !errors.Is(err, errNoConnection) {
			return resp, err
		}
	}
	return nil, &unsentError{errConnNotKept}
}

// usable returns the connections that requests may use.
func (t *verifiedTransport) usable() ([]*singleConn, error) {
	identity, err := t.identity()
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var usable []*singleConn
	for _, c := range t.conns {
		if c.cluster == identity {
			usable = append(usable, c)
		}
	}
	return usable, nil
}

// hasOther reports whether there is a connection that was not tried.
func (t *verifiedTransport) hasOther(tried []*singleConn) bool {
	now, err := t.usable()
	return err != nil || slices.ContainsFunc(now, func(c *singleConn) bool { return !slices.Contains(tried, c) })
}

// lockConnecting waits until no other request opens a connection that this one may use too.
func (t *verifiedTransport) lockConnecting(ctx context.Context) (unlock func(), err error) {
	t.mu.Lock()
	isHTTP1 := t.isHTTP1
	t.mu.Unlock()
	if isHTTP1 {
		return func() {}, nil
	}
	select {
	case t.connecting <- struct{}{}:
		return sync.OnceFunc(func() { <-t.connecting }), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// roundTripNew sends a request over a new connection. It calls unlock as soon as others may use that
// connection, or open another one.
func (t *verifiedTransport) roundTripNew(req *http.Request, unlock func()) (*http.Response, error) {
	defer time.AfterFunc(maxConnectingTime, unlock).Stop()
	defer unlock()
	identity, err := t.identity()
	if err != nil {
		return nil, &unsentError{err}
	}
	c := newSingleConn(t.config, t.window)
	c.cluster = identity
	if identity == nil {
		ready := sync.OnceFunc(func() { t.add(c); unlock() })
		trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { ready() }}
		return send(c, req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	}
	isHTTP1, err := t.verify(withPinnedConn(req.Context(), c))
	if err != nil {
		c.close()
		return nil, &unsentError{withoutNoConnection(err)}
	}
	t.mu.Lock()
	t.isHTTP1 = isHTTP1
	t.mu.Unlock()
	if !isHTTP1 {
		t.add(c)
		unlock()
		return send(c, req)
	}
	resp, err := send(c, req) // before others may take the connection
	t.add(c)
	return resp, err
}

// send sends a request of others than verify over a connection, if it may still be sent.
func send(c *singleConn, req *http.Request) (*http.Response, error) {
	if err := beforeSend(req.Context()); err != nil {
		return nil, err
	}
	resp, err := c.roundTrip(req)
	if err == nil {
		observeConn(req.Context(), c, resp)
	}
	return resp, err
}

// errConnLost replaces errNoConnection where no other connection is to be tried.
var errConnLost = errors.New("the connection was lost while the identity of the cluster was read")

func withoutNoConnection(err error) error {
	if errors.Is(err, errNoConnection) {
		return errConnLost
	}
	return err
}

// add lets requests use a connection until it is closed.
func (t *verifiedTransport) add(c *singleConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.onClose(func() { t.remove(c) }) {
		t.conns = append(t.conns, c)
	}
}

func (t *verifiedTransport) remove(c *singleConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns = slices.DeleteFunc(t.conns, func(other *singleConn) bool { return other == c })
}

// isConnected reports whether there is a connection.
func (t *verifiedTransport) isConnected() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.conns) > 0
}

// CloseIdleConnections closes the connections that no request uses.
func (t *verifiedTransport) CloseIdleConnections() {
	t.mu.Lock()
	conns := slices.Clone(t.conns)
	t.mu.Unlock()
	for _, c := range conns {
		c.base.CloseIdleConnections()
	}
}
