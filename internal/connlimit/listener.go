// Package connlimit limits the connections of a port for HTTP, and the memory of the headers that arrive on
// them. net/http limits the headers of one connection, but neither their sum nor the connections.
//
// A source, which is an address, has at most half of the connections. If there are none left, a connection
// of the source with the most of them ends that waits for a request, so that idle connections keep nobody
// out. Otherwise the new one is rejected: with 503 while there are few of these, and then by closing it.
package connlimit

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/vedette-io/vedette/internal/fair"
)

// Config configures a Listener. Zero values mean the defaults.
type Config struct {
	Connections int   // in total; 2,048. One source has half
	HeaderBytes int64 // of all requests under way; 64 MiB. One source has half
	// HeaderWait is how long a request waits for memory of its headers; 5 s.
	HeaderWait time.Duration
	// Reject answers a request on a connection that is one too many, and a request whose headers find no
	// memory.
	Reject func(w http.ResponseWriter, r *http.Request, message string)
	Log    *slog.Logger // gets a line for a connection that is closed
}

// maxRejected is how many connections at a time are told that they are one too many.
const maxRejected = 64

// Listener is a net.Listener whose connections are limited. Its methods Handler and ConnContext belong to
// the http.Server that uses it.
type Listener struct {
	net.Listener
	cfg     Config
	headers *fair.Line // keys are sources

	mu       sync.Mutex
	accepted int
	rejected int
	bySource map[string]map[*conn]struct{}
}

// New returns a Listener of another one.
func New(listener net.Listener, cfg Config) *Listener {
	if cfg.Connections <= 0 {
		cfg.Connections = 2048
	}
	if cfg.HeaderBytes <= 0 {
		cfg.HeaderBytes = 64 << 20
	}
	if cfg.HeaderWait <= 0 {
		cfg.HeaderWait = 5 * time.Second
	}
	return &Listener{Listener: listener, cfg: cfg, bySource: map[string]map[*conn]struct{}{},
		headers: fair.New(fair.Config{Capacity: cfg.HeaderBytes, Wait: cfg.HeaderWait})}
}

// SourceOf returns whose connection counts: its address without the port. A client of IPv6 has 2^64 addresses, so
// its network counts.
func SourceOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() && !ip.Is4In6() {
		network, _ := ip.WithZone("").Prefix(64) // the length is valid
		return network.String()
	}
	return host
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // net/http compares it with net.ErrClosed, and knows what failed
		}
		c := &conn{Conn: accepted, listener: l, source: SourceOf(accepted.RemoteAddr().String()), isWaiting: true}
		if l.admit(c) {
			return c, nil
		}
		l.cfg.Log.Warn("connection closed: there are too many, also of those that were told so", "source", c.source)
		_ = accepted.Close()
	}
}

// admit counts a connection, and reports whether it may be served, if only to be rejected.
func (l *Listener) admit(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := len(l.bySource[c.source])
	switch {
	case own >= l.cfg.Connections/2:
		c.rejection = fmt.Sprintf("this address has %d connections already, which is the limit: close some, or use them again", own)
	case l.accepted >= l.cfg.Connections && !l.evictLocked(own):
		c.rejection = fmt.Sprintf("all %d connections of this server are in use: try again later", l.accepted)
	}
	if c.rejection != "" {
		if l.rejected >= maxRejected {
			return false
		}
		l.rejected++
		return true
	}
	l.accepted++
	if l.bySource[c.source] == nil {
		l.bySource[c.source] = map[*conn]struct{}{}
	}
	l.bySource[c.source][c] = struct{}{}
	return true
}

// evictLocked ends a connection that waits for a request, and reports whether there was one. It is of the
// source with the most connections, which must have more than the source that has own ones.
func (l *Listener) evictLocked(own int) bool {
	var victim *conn
	most := own + 1
	for _, conns := range l.bySource {
		if len(conns) <= most {
			continue
		}
		if c := waiting(conns); c != nil {
			victim, most = c, len(conns)
		}
	}
	if victim == nil {
		return false
	}
	l.removeLocked(victim)
	_ = victim.Conn.Close() // its own Close, which net/http calls, finds it removed
	return true
}

// waiting returns a connection that waits for a request, or nil.
func waiting(conns map[*conn]struct{}) *conn {
	for c := range conns {
		if c.waits() {
			return c
		}
	}
	return nil
}

func (l *Listener) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.rejection != "" {
		l.rejected--
		return
	}
	l.removeLocked(c)
}

func (l *Listener) removeLocked(c *conn) {
	conns := l.bySource[c.source]
	if _, exists := conns[c]; !exists {
		return
	}
	delete(conns, c)
	l.accepted--
	if len(conns) == 0 {
		delete(l.bySource, c.source)
	}
}

type connKey struct{}

// ConnContext is for http.Server.ConnContext.
func (*Listener) ConnContext(ctx context.Context, served net.Conn) context.Context {
	if secured, isTLS := served.(*tls.Conn); isTLS {
		served = secured.NetConn()
	}
	c, _ := served.(*conn)
	return context.WithValue(ctx, connKey{}, c)
}

// Handler answers requests on connections that are one too many, and keeps the memory of headers until a
// request ends.
func (l *Listener) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(connKey{}).(*conn)
		if c == nil {
			next.ServeHTTP(w, r)
			return
		}
		message := c.rejection
		if message == "" {
			if err := c.beginRequest(r); err != nil {
				message = fmt.Sprintf("there is no memory for the headers of this request: %v", err)
			}
			defer c.endRequest()
		}
		if message != "" {
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			l.cfg.Reject(w, r, message)
			return
		}
		next.ServeHTTP(w, r)
	})
}
