package egress

import (
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// conn is a connection that is bounded in time.
type conn struct {
	net.Conn
	ctx     context.Context //nolint:containedctx // the context is that of whatever the connection is for
	release func() bool
	stall   time.Duration
}

// Connect connects to a host for protocols other than HTTP, under the policy. Reads fail if the
// server sends nothing for a while, and everything fails when ctx ends. The caller closes the
// connection.
func (c *Client) Connect(ctx context.Context, address string) (net.Conn, error) {
	inner, err := c.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: inner, ctx: ctx, stall: c.limits.StallTimeout, release: context.AfterFunc(ctx, func() { inner.Close() })}, nil
}

func (c *conn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, c.explain(err)
	}
	n, err := c.Conn.Read(p)
	return n, c.explain(err)
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, c.explain(err)
	}
	n, err := c.Conn.Write(p)
	return n, c.explain(err)
}

// explain replaces the error of a closed connection with the reason why it was closed.
func (c *conn) explain(err error) error {
	switch cause := context.Cause(c.ctx); {
	case err == nil:
		return nil
	case cause != nil:
		return cause
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &TimeError{"the server sent nothing more", c.stall}
	}
	return err
}

func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}
