package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"
)

// loggingCredentials is transport credentials that tell operators which connections came to
// nothing, and why: gRPC itself is silent about them, and an agent that is refused
// can say so in its own log only.
type loggingCredentials struct {
	credentials.TransportCredentials
	refusals    *refusalLog
	isPlaintext bool // whether they are plaintext
}

// ServerHandshake implements credentials.TransportCredentials.
func (c loggingCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := c.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		c.refusals.report(conn.RemoteAddr(), err)
		return secured, info, err
	}
	if c.isPlaintext {
		secured = &tlsDetectingConn{Conn: secured, refusals: c.refusals}
	}
	return secured, info, nil
}

// Clone implements credentials.TransportCredentials.
func (c loggingCredentials) Clone() credentials.TransportCredentials {
	return loggingCredentials{c.TransportCredentials.Clone(), c.refusals, c.isPlaintext}
}

// tlsDetectingConn is a plaintext connection that tells when the other side begins with
// TLS. gRPC calls Read from one goroutine.
type tlsDetectingConn struct {
	net.Conn
	refusals *refusalLog
	hasRead  bool
}

const tlsHandshake = 0x16 // first byte of TLS

var errSpeaksTLS = errors.New("it speaks TLS, and this port is plaintext: set grpc.server.security.enabled, or clouddriver.insecure to true in the agent's configuration")

// Read implements net.Conn.
func (c *tlsDetectingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.hasRead {
		c.hasRead = true
		if b[0] == tlsHandshake {
			c.refusals.report(c.RemoteAddr(), errSpeaksTLS)
		}
	}
	return n, err
}

// refusalLog logs connections that were refused: each reason of each host once in a
// while, with how often it was seen meanwhile.
type refusalLog struct {
	log *slog.Logger

	mu      sync.Mutex
	entries map[refusalKey]*refusalEntry
}

type refusalKey struct{ host, kind string }

type refusalEntry struct {
	lastLogged time.Time
	suppressed int
}

const (
	refusalInterval = time.Minute
	maxRefusals     = 1000 // that are remembered; hosts beyond share one entry
)

func newRefusalLog(log *slog.Logger) *refusalLog {
	return &refusalLog{log: log, entries: map[refusalKey]*refusalEntry{}}
}

func (r *refusalLog) report(peer net.Addr, err error) {
	if isClosedByPeer(err) {
		r.log.Debug("connection closed before it was secured, as health checks of load balancers do", "peer", peer.String(), "error", err)
		return
	}
	host, _, splitErr := net.SplitHostPort(peer.String())
	if splitErr != nil {
		host = peer.String()
	}
	kind, reason := classifyHandshakeError(err)
	if suppressed, ok := r.shouldLog(refusalKey{host, kind}, time.Now()); ok {
		r.log.Warn("connection of an agent refused", "peer", peer.String(), "reason", reason, "unsaid", suppressed)
	}
}

// shouldLog reports whether to log a refusal now, and how many were not logged since the
// last time.
func (r *refusalLog) shouldLog(key refusalKey, now time.Time) (suppressed int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := r.entryLocked(key, now)
	if !entry.lastLogged.IsZero() && now.Sub(entry.lastLogged) < refusalInterval {
		entry.suppressed++
		return 0, false
	}
	suppressed, entry.suppressed, entry.lastLogged = entry.suppressed, 0, now
	return suppressed, true
}

func (r *refusalLog) entryLocked(key refusalKey, now time.Time) *refusalEntry {
	if entry := r.entries[key]; entry != nil {
		return entry
	}
	if len(r.entries) >= maxRefusals {
		for old, entry := range r.entries {
			if now.Sub(entry.lastLogged) >= refusalInterval && entry.suppressed == 0 {
				delete(r.entries, old)
			}
		}
	}
	if len(r.entries) >= maxRefusals {
		key = refusalKey{}
	}
	if r.entries[key] == nil {
		r.entries[key] = &refusalEntry{}
	}
	return r.entries[key]
}

// isClosedByPeer reports whether the other side left without a word.
func isClosedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// classifyHandshakeError says what was wrong in words that lead to the setting, and of which kind
// that is: the words may hold what the other side has chosen.
func classifyHandshakeError(err error) (kind, reason string) {
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errSpeaksTLS):
		return "tls", err.Error()
	case errors.As(err, &certificate):
		return "certificate", describeCertificateError(certificate)
	case errors.As(err, &record):
		return "plaintext", "it does not speak TLS, which this port does: set clouddriver.insecure to false in the agent's configuration"
	case strings.Contains(err.Error(), "didn't provide a certificate"):
		return "none", "it showed no client certificate: set clouddriver.tls.clientCertFile and clouddriver.tls.clientKeyFile in the agent's configuration"
	case strings.Contains(err.Error(), "remote error"):
		return "remote", fmt.Sprintf("it ended the handshake, most likely as it does not trust this server's certificate: %s", err)
	}
	return "other", fmt.Sprintf("the TLS handshake failed: %.300s", err)
}

func describeCertificateError(err *tls.CertificateVerificationError) string {
	subject := "its certificate"
	if len(err.UnverifiedCertificates) > 0 {
		subject = fmt.Sprintf("its certificate %.200q", err.UnverifiedCertificates[0].Subject.String())
	}
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return subject + " was not signed by an authority of grpc.server.security.trustCertCollection"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("%s is valid from %s to %s only", subject, invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s was refused: %.300s", subject, err.Err)
}
