package kube

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"github.com/vedette-io/vedette"
)

// errNoConnection means that a request was not sent, because its connection is closed or has no room.
var errNoConnection = errors.New("the connection to the API server was lost, or has no room for another request")

// singleConn is one connection to an API server. Its http.Transport opens no second one, so whatever
// was learned over the connection is true for each later request: a request that would need another
// connection fails with errNoConnection and was not sent.
type singleConn struct {
	base *http.Transport
	// cluster is the identity that was read over the connection; nil if none was. It is set before
	// others can use the connection.
	cluster *vedette.Cluster

	mu     sync.Mutex
	dialed bool
	closed bool
	conn   net.Conn // nil before it was dialed
	remove func()   // called when the connection is closed; nil for none
	shown  *Conn    // nil before proofs
}

func newSingleConn(config *connConfig, window int) *singleConn {
	c := &singleConn{base: config.transport(window)}
	c.base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if !c.beginDial() {
			return nil, errNoConnection
		}
		conn, err := config.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return c.opened(conn)
	}
	return c
}

// beginDial reports whether the connection may be opened, which it may once.
func (c *singleConn) beginDial() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dialed || c.closed {
		return false
	}
	c.dialed = true
	return true
}

func (c *singleConn) opened(conn net.Conn) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		conn.Close()
		return nil, errNoConnection
	}
	c.conn = conn
	return &observedConn{Conn: conn, closed: c.noteClosed}, nil
}

// onClose sets what is called when the connection is closed. It returns false if it is closed already.
func (c *singleConn) onClose(remove func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove = remove
	return !c.closed
}

func (c *singleConn) noteClosed() {
	c.mu.Lock()
	c.closed = true
	remove := c.remove
	c.remove = nil
	c.mu.Unlock()
	if remove != nil {
		remove()
	}
}

// close closes the connection, and ends the requests that use it.
func (c *singleConn) close() {
	c.noteClosed()
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
	c.base.CloseIdleConnections()
}

// roundTrip sends a request over the connection. The body is a new one each time, because the request
// may be sent over another connection after errNoConnection.
func (c *singleConn) roundTrip(req *http.Request) (*http.Response, error) {
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err //nolint:wrapcheck // as a RoundTripper returns it
		}
		req = req.WithContext(req.Context())
		req.Body = body
	}
	return c.base.RoundTrip(req)
}

// observedConn reports that it was closed.
type observedConn struct {
	net.Conn
	closed func()
}

func (c *observedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}
