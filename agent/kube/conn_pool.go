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
	// connecting is held by a request that finds no connection, so that a dozen
	// feeds that begin together shake hands once and not a dozen times.
	connecting chan struct{}
	connected  atomic.Bool // the last request got an answer
}

// connPool spreads watches over connections. An API server refuses streams beyond
// 100 to 250 per connection; the watch that waits for one would look alive.
type connPool struct {
	maxStreams   int
	newTransport func() (*http.Transport, http.RoundTripper, error)

	mu    sync.Mutex
	conns []*pooledConn
}

// acquire returns a lane with room, and counts the caller in.
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

// release counts the caller out. The last one out of an old lane closes it.
func (l *connPool) release(conn *pooledConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if conn.streams--; conn.streams == 0 && conn.retired {
		conn.base.CloseIdleConnections()
	}
}

// retireAll lets every new watch go over a new connection.
func (l *connPool) retireAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		if conn.retired = true; conn.streams == 0 {
			conn.base.CloseIdleConnections()
		}
	}
	l.conns = nil
}

// roundTrip sends a request over the lane. Where there may be no connection,
// others wait until the answer's head says that there is one.
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
