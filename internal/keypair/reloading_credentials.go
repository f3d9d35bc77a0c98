package keypair

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
)

// ReloadingCredentials are TLS credentials that read the authorities' file at each
// handshake, so that a new authority counts without a restart. While that file can't
// be read, the last good one counts.
type ReloadingCredentials struct {
	credentials.TransportCredentials // for all but handshakes; of the first configuration
	read                             func() (*tls.Config, error)
	log                              *slog.Logger

	mu   sync.Mutex
	last *tls.Config
}

// NewReloadingCredentials reads the files for the first time.
func NewReloadingCredentials(read func() (*tls.Config, error), log *slog.Logger) (*ReloadingCredentials, error) {
	first, err := read()
	if err != nil {
		return nil, err
	}
	return &ReloadingCredentials{TransportCredentials: credentials.NewTLS(first), read: read, log: log, last: first}, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *ReloadingCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(c.current()).ClientHandshake(ctx, authority, conn)
}

func (c *ReloadingCredentials) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	cfg, err := c.read()
	if err != nil {
		c.log.Warn("certificates can't be read again; those that were read before count", "error", err)
		return c.last
	}
	c.last = cfg
	return cfg
}

// Clone implements credentials.TransportCredentials. The state is shared, as all of
// it is safe for that.
func (c *ReloadingCredentials) Clone() credentials.TransportCredentials { return c }
