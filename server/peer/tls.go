package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
)

// alpn is the only protocol.
const alpn = "h2"

var errUnknownKey = errors.New("the other side has not proved the key of a server that runs")

func (i *Identity) config(verify func(key [32]byte) error) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{i.certificate}, MinVersion: tls.VersionTLS13, NextProtos: []string{alpn},
		// Names and authorities mean nothing here: VerifyConnection verifies the key itself.
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, //nolint:gosec // see above
		SessionTicketsDisabled: true, // each connection proves its key
		VerifyConnection: func(state tls.ConnectionState) error {
			key, err := keyOf(state)
			if err != nil {
				return err
			}
			return verify(key)
		},
	}
}

func keyOf(state tls.ConnectionState) ([32]byte, error) {
	if len(state.PeerCertificates) == 0 || state.NegotiatedProtocol != alpn {
		return [32]byte{}, errUnknownKey
	}
	return KeyOf(state.PeerCertificates[0]), nil
}

// authInfo says whose connection it is.
type authInfo struct {
	credentials.TLSInfo
	peer Peer
}

// serverCredentials accept the servers that run, and note their connections.
type serverCredentials struct {
	credentials.TransportCredentials
	members     members
	connections *connections
	log         *slog.Logger
}

// joinWait is how long a key may be unknown: a server that has just written its row calls others before they have read the table again.
const joinWait = time.Second

func newServerCredentials(identity *Identity, m members, c *connections, log *slog.Logger) *serverCredentials {
	verify := func(key [32]byte) error { return awaitKey(m, key) }
	return &serverCredentials{credentials.NewTLS(identity.config(verify)), m, c, log}
}

// awaitKey waits for the server that has a key. Whoever has none learns no more than that.
func awaitKey(m members, key [32]byte) error {
	timeout := time.NewTimer(joinWait)
	defer timeout.Stop()
	for {
		changed := m.Changed()
		if _, runs := m.ByKey(key); runs {
			return nil
		}
		select {
		case <-changed:
		case <-timeout.C:
			return errUnknownKey
		}
	}
}

// ServerHandshake implements credentials.TransportCredentials.
func (s *serverCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := s.TransportCredentials.ServerHandshake(raw)
	if errors.Is(err, errUnknownKey) {
		s.log.Warn("server rejected: its key is not in the table of servers of this database; one that was evicted ends",
			"address", raw.RemoteAddr().String())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("accept a server at %s: %w", raw.RemoteAddr(), err)
	}
	tlsInfo, isTLS := info.(credentials.TLSInfo)
	key, err := keyOf(tlsInfo.State)
	peer, ok := s.members.ByKey(key)
	if !isTLS || err != nil || !ok {
		_ = conn.Close() // nothing was sent
		return nil, nil, fmt.Errorf("accept a server at %s: %w", raw.RemoteAddr(), errUnknownKey)
	}
	proven, err := s.connections.prove(conn, raw, peer)
	return proven, authInfo{tlsInfo, peer}, err
}

// Clone implements credentials.TransportCredentials.
func (s *serverCredentials) Clone() credentials.TransportCredentials { return s }

// newClientCredentials returns credentials for the connection to one process.
func newClientCredentials(identity *Identity, to Peer) credentials.TransportCredentials {
	return clientCredentials{credentials.NewTLS(identity.config(func(key [32]byte) error {
		if key != to.Key {
			return fmt.Errorf("what answers at %s is not server %s: it has another key than the table of servers", to.Address, to.ID)
		}
		return nil
	}))}
}

// clientCredentials verify no names.
type clientCredentials struct {
	credentials.TransportCredentials
}

// ClientHandshake implements credentials.TransportCredentials.
func (c clientCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return c.TransportCredentials.ClientHandshake(ctx, authority, conn)
}

// Clone implements credentials.TransportCredentials.
func (c clientCredentials) Clone() credentials.TransportCredentials { return c }
