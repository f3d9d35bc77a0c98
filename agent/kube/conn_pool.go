package kube

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
)

// pooledConn is one connection that carries up to a number of watches.
type pooledConn struct {
	base    *http.Transport
	rt      http.RoundTripper
	streams int
	retired bool
	// connecting is held by a request that finds no connection, so that a dozen feeds
	// that start together do one TLS handshake instead of a dozen.
	connecting chan struct{}
	connected  atomic.Bool // the last request got a response
}

// connPool distributes watches over connections, because an API server accepts only 100
// to 250 streams per connection. A watch that waits for a stream would look alive.
type connPool struct {
	maxStreams   int
	newTransport func() (*http.Transport, http.RoundTripper, error)

	mu    sync.Mutex
	conns []*pooledConn
}

// acquire returns a connection with a free stream. The caller must release it.
func (l *connPool) acquire() (*pooledConn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		if conn.streams < l.maxStreams {
			conn.streams++
			return conn, nil
		}
	}
	base, rt, err := l.newTransport()
	if err != nil {
		return nil, err
	}
	conn := &pooledConn{base: base, rt: rt, streams: 1, connecting: make(chan struct{}, 1)}
	l.conns = append(l.conns, conn)
	return conn, nil
}

// release gives a stream back. It closes a retired connection with its last stream.
func (l *connPool) release(conn *pooledConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	conn.streams--
	if conn.streams == 0 && conn.retired {
		conn.base.CloseIdleConnections()
	}
}

// retireAll makes every new watch use a new connection.
func (l *connPool) retireAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		conn.retired = true
		if conn.streams == 0 {
			conn.base.CloseIdleConnections()
		}
	}
	l.conns = nil
}

// roundTrip sends a request over the connection. While there may be no connection, other
// requests wait until the response header shows that there is one.
func (c *pooledConn) roundTrip(req *http.Request) (*http.Response, error) {
	if !c.connected.Load() {
		select {
		case c.connecting <- struct{}{}:
			defer func() { <-c.connecting }()
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	}
	resp, err := c.rt.RoundTrip(req)
	c.connected.Store(err == nil)
	return resp, err
}
