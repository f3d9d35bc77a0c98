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

	"github.com/vedette-io/vedette"
)

// loggingCredentials is transport credentials that log which handshakes failed and why. gRPC itself
// does not log them, and an agent can log its rejection only on its own side.
type loggingCredentials struct {
	credentials.TransportCredentials
	rejections  *rejectionLog
	isPlaintext bool // whether the credentials are plaintext
}

func (c loggingCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	lingering := &lingeringConn{Conn: conn}
	secured, info, err := c.TransportCredentials.ServerHandshake(lingering)
	lingering.isEstablished.Store(err == nil)
	if err != nil {
		c.rejections.report(conn.RemoteAddr(), err)
		return secured, info, err
	}
	if c.isPlaintext {
		secured = &tlsDetectingConn{Conn: secured, rejections: c.rejections}
	}
	return secured, info, nil
}

func (c loggingCredentials) Clone() credentials.TransportCredentials {
	return loggingCredentials{c.TransportCredentials.Clone(), c.rejections, c.isPlaintext}
}

// tlsDetectingConn is a plaintext connection that fails if the client starts a TLS handshake. gRPC
// calls Read from one goroutine.
type tlsDetectingConn struct {
	net.Conn
	rejections *rejectionLog
	hasRead    bool
}

const tlsHandshake = 0x16 // first byte of a TLS handshake record

var errSpeaksTLS = errors.New("the agent speaks TLS, but this port is plaintext: set grpc.server.security.enabled to true, or clouddriver.insecure to true in the agent's configuration")

// Read fails with errSpeaksTLS if the first byte starts a TLS handshake.
func (c *tlsDetectingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.hasRead {
		c.hasRead = true
		if b[0] == tlsHandshake {
			c.rejections.report(c.RemoteAddr(), errSpeaksTLS)
		}
	}
	return n, err
}

// rejectionLog logs rejected connections: each kind of reason of each host once per rejectionInterval,
// with the number of rejections since.
type rejectionLog struct {
	log *slog.Logger

	mu      sync.Mutex
	entries map[rejectionKey]*rejectionEntry
}

type rejectionKey struct{ host, kind string }

type rejectionEntry struct {
	lastLogged time.Time
	suppressed int
}

const (
	rejectionInterval = time.Minute
	maxRejections     = 1000 // maximum number of entries; further hosts share one
)

func newRejectionLog(log *slog.Logger) *rejectionLog {
	return &rejectionLog{log: log, entries: map[rejectionKey]*rejectionEntry{}}
}

func (r *rejectionLog) report(peer net.Addr, err error) {
	if isClosedByPeer(err) {
		r.log.Debug("connection closed before the handshake", "peer", peer.String(), "error", err)
		return
	}
	host, _, splitErr := net.SplitHostPort(peer.String())
	if splitErr != nil {
		host = peer.String()
	}
	kind, reason := classifyHandshakeError(err)
	if suppressed, ok := r.shouldLog(rejectionKey{host, kind}, time.Now()); ok {
		r.log.Warn("agent connection refused", "peer", peer.String(), "reason", reason, "suppressed", suppressed)
	}
}

// shouldLog reports whether to log a rejection now, and how many rejections were not logged since the
// last one.
func (r *rejectionLog) shouldLog(key rejectionKey, now time.Time) (suppressed int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := r.entryLocked(key, now)
	if !entry.lastLogged.IsZero() && now.Sub(entry.lastLogged) < rejectionInterval {
		entry.suppressed++
		return 0, false
	}
	suppressed = entry.suppressed
	entry.suppressed = 0
	entry.lastLogged = now
	return suppressed, true
}

func (r *rejectionLog) entryLocked(key rejectionKey, now time.Time) *rejectionEntry {
	if entry := r.entries[key]; entry != nil {
		return entry
	}
	if len(r.entries) >= maxRejections {
		for old, entry := range r.entries {
			if now.Sub(entry.lastLogged) >= rejectionInterval && entry.suppressed == 0 {
				delete(r.entries, old)
			}
		}
	}
	if len(r.entries) >= maxRejections {
		key = rejectionKey{}
	}
	if r.entries[key] == nil {
		r.entries[key] = &rejectionEntry{}
	}
	return r.entries[key]
}

// isClosedByPeer reports whether the client closed the connection.
func isClosedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// classifyHandshakeError returns the kind of an error, and a reason for operators that names the
// setting to change. Rejections are counted by kind and not by reason, because the reason may contain
// text that the client chose.
func classifyHandshakeError(err error) (kind, reason string) {
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errSpeaksTLS):
		return "tls", err.Error()
	case errors.As(err, &certificate):
		return classifyCertificateError(certificate)
	case vedette.KindOf(err) == vedette.Denied: // by grpc.auth.x509.filters
		return "certificate subject", err.Error()
	case errors.As(err, &record):
		return "plaintext", "the agent does not speak TLS, but this port requires it: set clouddriver.insecure to false in the agent's configuration"
	case strings.Contains(err.Error(), "didn't provide a certificate"):
		return "none", "the agent sent no client certificate: set clouddriver.tls.clientCertFile and clouddriver.tls.clientKeyFile in the agent's configuration"
	case strings.Contains(err.Error(), "remote error"):
		return "remote", fmt.Sprintf("the agent ended the handshake, probably because it does not trust this server's certificate: %s", err)
	}
	return "other", fmt.Sprintf("the TLS handshake failed: %.300s", err)
}

// classifyCertificateError is classifyHandshakeError for certificates. Each reason is a kind, so that an
// agent with an expired certificate is not hidden behind one with a foreign certificate.
func classifyCertificateError(err *tls.CertificateVerificationError) (kind, reason string) {
	subject := "the agent's certificate"
	if len(err.UnverifiedCertificates) > 0 {
		subject = fmt.Sprintf("the agent's certificate %.200q", err.UnverifiedCertificates[0].Subject.String())
	}
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return "certificate authority", subject + " was not signed by an authority in grpc.server.security.trustCertCollection"
	case !errors.As(err, &invalid):
		return "certificate", fmt.Sprintf("%s is invalid: %.300s", subject, err.Err)
	}
	switch invalid.Reason {
	case x509.Expired:
		return "certificate validity", fmt.Sprintf("%s is valid only from %s to %s", subject, invalid.Cert.NotBefore.UTC().Format(time.RFC3339),
			invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	case x509.IncompatibleUsage:
		return "certificate usage", subject + " was not issued for clients: its extended key usage must include clientAuth"
	case x509.CANotAuthorizedForThisName:
		return "certificate name", fmt.Sprintf("%s has a name that its authority may not sign: %.300s", subject, invalid.Detail)
	}
	return "certificate", fmt.Sprintf("%s is invalid: %.300s", subject, err.Err)
}
