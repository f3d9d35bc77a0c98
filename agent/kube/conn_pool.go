package kube

import (
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
)

// ErrTooManyWatches means that the API server would need one connection more than
// Options.MaxHTTP1Watches.
var ErrTooManyWatches = errors.New("too many watches over HTTP/1.1")

// defaultHTTP1Watches bounds the connections that one API server can make an agent open, each
// of which takes a descriptor and some 30 KiB.
const defaultHTTP1Watches = 1024

// pooledConn is one connection that carries up to a number of watches. It is opened again if it is lost.
// An API server, or a proxy before it, that speaks only HTTP/1.1 needs a connection for each of them.
type pooledConn struct {
	*authTransport
	pool    *connPool
	streams int
	retired bool
}

// connPool distributes watches over connections, because an API server accepts only 100
// to 250 streams per connection. A watch that waits for a stream would look alive.
type connPool struct {
	maxStreams   int
	maxHTTP1     int // requests at the same time while the API server answers in HTTP/1.1
	newTransport func() (*authTransport, error)

	mu      sync.Mutex
	conns   []*pooledConn
	isHTTP1 bool // the last answer was in HTTP/1.1
	open    int  // requests that were sent, and whose answers were not closed
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
	transport, err := l.newTransport()
	if err != nil {
		return nil, err
	}
	conn := &pooledConn{authTransport: transport, pool: l, streams: 1}
	l.conns = append(l.conns, conn)
	return conn, nil
}

// release gives a stream back. It closes a retired connection with its last stream.
func (l *connPool) release(conn *pooledConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	conn.streams--
	if conn.streams == 0 && conn.retired {
		conn.conns.CloseIdleConnections()
	}
}

// retireAll makes every new watch use a new connection.
func (l *connPool) retireAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		conn.retired = true
		if conn.streams == 0 {
			conn.conns.CloseIdleConnections()
		}
	}
	l.conns = nil
}

// roundTrip sends a request over the connection. After success the caller must call
// connPool.endRequest.
func (c *pooledConn) roundTrip(req *http.Request) (*http.Response, error) {
	if err := c.pool.beginRequest(); err != nil {
		return nil, err
	}
	resp, err := c.RoundTrip(req)
	if err != nil {
		c.pool.endRequest()
		return nil, err
	}
	c.pool.noteProtocol(resp.ProtoMajor == 1)
	return resp, nil
}

// beginRequest counts a request that is about to be sent. If the API server speaks HTTP/1.1, the request
// takes a connection of its own, and too many are an error: a watch that waited for a connection
// would look alive.
func (l *connPool) beginRequest() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isHTTP1 && l.open >= l.maxHTTP1 {
		return l.tooManyWatchesLocked()
	}
	l.open++
	return nil
}

// checkNewConn is called with the protocol of a new connection, before it carries its first watch. Many
// requests may have begun before the protocol was known.
func (l *connPool) checkNewConn(isHTTP1 bool) error {
	l.noteProtocol(isHTTP1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isHTTP1 && l.open > l.maxHTTP1 {
		return l.tooManyWatchesLocked()
	}
	return nil
}

func (l *connPool) tooManyWatchesLocked() error {
	return vedette.Errorf(vedette.Unavailable, "%w: the API server, or a proxy before it, does not speak HTTP/2, so each watch takes a connection, and %d are open: "+
		"let HTTP/2 pass, or select fewer kinds or namespaces", ErrTooManyWatches, min(l.open, l.maxHTTP1))
}

func (l *connPool) endRequest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
}

func (l *connPool) noteProtocol(isHTTP1 bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isHTTP1 = isHTTP1
}

// isConnected reports whether any of the connections is open.
func (l *connPool) isConnected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.conns, func(conn *pooledConn) bool { return conn.conns.isConnected() })
}
