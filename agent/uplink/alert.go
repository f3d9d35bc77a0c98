package uplink

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// alertCredentials make connections report the TLS alert by which the server ended them. With
// TLS 1.3 the client's handshake ends before the server has checked the client certificate, so
// the alert arrives while gRPC already writes. The server closes the connection after it, and
// without this, gRPC returns the error of the write ("broken pipe") or that of the read,
// whichever comes first.
type alertCredentials struct {
	credentials.TransportCredentials
}

func (c alertCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return conn, info, err
	}
	return &alertConn{Conn: conn, readFailed: make(chan struct{})}, info, nil
}

func (c alertCredentials) Clone() credentials.TransportCredentials {
	return alertCredentials{c.TransportCredentials.Clone()}
}

// alertConn is a connection whose writes fail with the alert of the server, if it sent one.
// gRPC reads in one goroutine as long as the connection is open.
type alertConn struct {
	net.Conn
	once       sync.Once
	readErr    error         // of the first read that failed; valid after readFailed is closed
	readFailed chan struct{} // closed by Read
}

// alertTimeout is how long a failed write waits for the reader to find the reason. The reader
// fails at once too, so this is only an upper bound.
const alertTimeout = time.Second

// Read remembers why reading failed.
func (c *alertConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.once.Do(func() {
			c.readErr = err
			close(c.readFailed)
		})
	}
	return n, err
}

// Write returns the alert instead of the error that follows from it.
func (c *alertConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err == nil {
		return n, nil
	}
	timer := time.NewTimer(alertTimeout)
	defer timer.Stop()
	select {
	case <-c.readFailed:
		if isAlert(c.readErr) {
			err = c.readErr
		}
	case <-timer.C:
	}
	return n, err
}

// isAlert reports whether the other side ended the connection with a TLS alert.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}
