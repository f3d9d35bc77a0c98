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

// telling is transport credentials that tell operators which connections came to
// nothing, and why: gRPC itself is silent about them, and an agent that is refused
// can say so in its own log only.
type telling struct {
	credentials.TransportCredentials
	refusals *refusals
	plain    bool // whether they are plaintext
}

// ServerHandshake implements credentials.TransportCredentials.
func (t telling) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := t.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		t.refusals.note(conn.RemoteAddr(), err)
		return secured, info, err
	}
	if t.plain {
		secured = &sniffing{Conn: secured, refusals: t.refusals}
	}
	return secured, info, nil
}

// Clone implements credentials.TransportCredentials.
func (t telling) Clone() credentials.TransportCredentials {
	return telling{t.TransportCredentials.Clone(), t.refusals, t.plain}
}

// sniffing is a plaintext connection that tells when the other side begins with
// TLS. gRPC calls Read from one goroutine.
type sniffing struct {
	net.Conn
	refusals *refusals
	begun    bool
}

const tlsHandshake = 0x16 // first byte of TLS

var errSpeaksTLS = errors.New("it speaks TLS, and this port is plaintext: set grpc.server.security.enabled, or clouddriver.insecure to true in the agent's configuration")

// Read implements net.Conn.
func (s *sniffing) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if n > 0 && !s.begun {
		s.begun = true
		if b[0] == tlsHandshake {
			s.refusals.note(s.RemoteAddr(), errSpeaksTLS)
		}
	}
	return n, err
}

// refusals logs connections that were refused: each reason of each host once in a
// while, with how often it was seen meanwhile.
type refusals struct {
	log *slog.Logger

	mu    sync.Mutex
	known map[refusal]*repeats
}

type refusal struct{ host, kind string }

type repeats struct {
	told   time.Time
	unsaid int
}

const (
	refusalPause = time.Minute
	mostRefusals = 1000 // that are remembered; hosts beyond share one entry
)

func newRefusals(log *slog.Logger) *refusals {
	return &refusals{log: log, known: map[refusal]*repeats{}}
}

func (r *refusals) note(peer net.Addr, err error) {
	if hungUp(err) {
		r.log.Debug("connection closed before it was secured, as health checks of load balancers do", "peer", peer.String(), "error", err)
		return
	}
	host, _, splitErr := net.SplitHostPort(peer.String())
	if splitErr != nil {
		host = peer.String()
	}
	kind, reason := reasonOf(err)
	if unsaid, tell := r.due(refusal{host, kind}, time.Now()); tell {
		r.log.Warn("connection of an agent refused", "peer", peer.String(), "reason", reason, "unsaid", unsaid)
	}
}

// due reports whether to log a refusal now, and how many were not logged since the
// last time.
func (r *refusals) due(what refusal, now time.Time) (unsaid int, tell bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.entryLocked(what, now)
	if !seen.told.IsZero() && now.Sub(seen.told) < refusalPause {
		seen.unsaid++
		return 0, false
	}
	unsaid, seen.unsaid, seen.told = seen.unsaid, 0, now
	return unsaid, true
}

func (r *refusals) entryLocked(what refusal, now time.Time) *repeats {
	if seen := r.known[what]; seen != nil {
		return seen
	}
	if len(r.known) >= mostRefusals {
		for key, seen := range r.known {
			if now.Sub(seen.told) >= refusalPause && seen.unsaid == 0 {
				delete(r.known, key)
			}
		}
	}
	if len(r.known) >= mostRefusals {
		what = refusal{}
	}
	if r.known[what] == nil {
		r.known[what] = &repeats{}
	}
	return r.known[what]
}

// hungUp reports whether the other side left without a word.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// reasonOf says what was wrong in words that lead to the setting, and of which kind
// that is: the words may hold what the other side has chosen.
func reasonOf(err error) (kind, reason string) {
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errSpeaksTLS):
		return "tls", err.Error()
	case errors.As(err, &certificate):
		return "certificate", refusedCertificate(certificate)
	case errors.As(err, &record):
		return "plaintext", "it does not speak TLS, which this port does: set clouddriver.insecure to false in the agent's configuration"
	case strings.Contains(err.Error(), "didn't provide a certificate"):
		return "none", "it showed no client certificate: set clouddriver.tls.clientCertFile and clouddriver.tls.clientKeyFile in the agent's configuration"
	case strings.Contains(err.Error(), "remote error"):
		return "remote", fmt.Sprintf("it ended the handshake, most likely as it does not trust this server's certificate: %s", err)
	}
	return "other", fmt.Sprintf("the TLS handshake failed: %.300s", err)
}

func refusedCertificate(err *tls.CertificateVerificationError) string {
	who := "its certificate"
	if len(err.UnverifiedCertificates) > 0 {
		who = fmt.Sprintf("its certificate %.200q", err.UnverifiedCertificates[0].Subject.String())
	}
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return who + " was not signed by an authority of grpc.server.security.trustCertCollection"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("%s is valid from %s to %s only", who, invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s was refused: %.300s", who, err.Err)
}
