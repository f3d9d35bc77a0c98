package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
)

// followingCreds are TLS credentials that read the authorities' file at each
// handshake, so that a new authority counts without a restart. While that file can't
// be read, the last good one counts.
type followingCreds struct {
	credentials.TransportCredentials // for all but handshakes; of the first configuration
	read                             func() (*tls.Config, error)
	log                              *slog.Logger

	mu   sync.Mutex
	last *tls.Config
}

// newFollowingCreds reads the files for the first time.
func newFollowingCreds(read func() (*tls.Config, error), log *slog.Logger) (*followingCreds, error) {
	first, err := read()
	if err != nil {
		return nil, err
	}
	return &followingCreds{TransportCredentials: credentials.NewTLS(first), read: read, log: log, last: first}, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *followingCreds) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(c.now()).ClientHandshake(ctx, authority, conn)
}

func (c *followingCreds) now() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, err := c.read()
	if err != nil {
		c.log.Warn("certificates can't be read again; those that were read before count", "error", err)
		return c.last
	}
	c.last = now
	return now
}

// Clone implements credentials.TransportCredentials. The state is shared, as all of
// it is safe for that.
func (c *followingCreds) Clone() credentials.TransportCredentials { return c }
