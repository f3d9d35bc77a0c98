// Package grpctls has the TLS credentials of gRPC clients whose certificates change. It is apart from
// package keypair because programs that only speak HTTP use that package too.
package grpctls

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
)

// ReloadingCredentials are TLS credentials that read the CA file at each handshake, so that a
// new CA is trusted without a restart. If the file cannot be read, they use the CAs that were
// read last.
type ReloadingCredentials struct {
	credentials.TransportCredentials // of the first configuration, for everything but handshakes
	read                             func() (*tls.Config, error)
	log                              *slog.Logger

	mu   sync.Mutex
	last *tls.Config
}

// NewReloadingCredentials returns credentials whose configuration read returns. It fails if
// the first read fails.
func NewReloadingCredentials(read func() (*tls.Config, error), log *slog.Logger) (*ReloadingCredentials, error) {
	first, err := read()
	if err != nil {
		return nil, err
	}
	return &ReloadingCredentials{TransportCredentials: credentials.NewTLS(first), read: read, log: log, last: first}, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *ReloadingCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo,
	error) {
	return credentials.NewTLS(c.current()).ClientHandshake(ctx, authority, conn)
}

func (c *ReloadingCredentials) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	cfg, err := c.read()
	if err != nil {
		c.log.Warn("certificates not reloaded, keeping the previous ones", "error", err)
		return c.last
	}
	c.last = cfg
	return cfg
}

// Clone implements credentials.TransportCredentials. Clones share the state, which is safe for
// concurrent use.
func (c *ReloadingCredentials) Clone() credentials.TransportCredentials { return c }
