package kube

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/vedette-io/vedette"
)

// secretTransport sends each request over a connection of its own, in HTTP/1.1, and
// zeroes the buffers that held the response as soon as they are read or closed.
//
// The agent requests Secrets as metadata only, but kubectl apply leaves the whole
// manifest, data included, in an annotation. What net/http reads stays in buffers that
// nothing outside of it can reach until something else overwrites them, so a core dump
// would show it. The buffers of this transport are:
//
//	bufio.Reader              zeroed by its source, which gets all free room to read into
//	the splitter's buffer     zeroed by the splitter (jsonstream.Options.Wipe)
//	crypto/tls's rawInput     decrypted in place; zeroed by tlsWiper after each read, but
//	                          only with Options.WipeTLSBuffers
//
// Out of reach are the vector registers. The scheduler saves them if it interrupts
// decrypting or copying: up to 1 KiB per processor, until the next interruption
// overwrites it.
//
// It serves the feeds of Secrets, of which an account has one or a few, and operations
// on Secrets.
type secretTransport struct {
	d    *connConfig
	wipe *tlsWiper // nil if Options.WipeTLSBuffers is off
	// identity and verify are those of verifiedTransport.
	identity func() (*vedette.Cluster, error)
	verify   func(ctx context.Context) error
}

type secretConnKey struct{}

// RoundTrip sends one request over a new connection that leads to the right cluster. Closing the body
// closes the connection.
func (t *secretTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if conn, ok := ctx.Value(secretConnKey{}).(net.Conn); ok {
		return t.readIdentity(conn, req)
	}
	conn, err := t.dial(ctx, req)
	if err != nil {
		return nil, &unsentError{err}
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	if err := t.verifyConn(ctx, conn); err != nil {
		stop()
		conn.Close()
		return nil, &unsentError{firstError(context.Cause(ctx), err)}
	}
	if err := beforeSend(ctx); err != nil {
		stop()
		conn.Close()
		return nil, err
	}
	resp, err := t.roundTripHTTP1(conn, req)
	if err != nil {
		stop()
		conn.Close()
		return nil, firstError(context.Cause(ctx), err)
	}
	if c, ok := conn.(*tls.Conn); ok {
		state := c.ConnectionState()
		resp.TLS = &state
	}
	resp.Body.(*wipingBody).stop = stop
	return resp, nil
}

// verifyConn checks that a connection leads to the cluster that was identified, if one was.
func (t *secretTransport) verifyConn(ctx context.Context, conn net.Conn) error {
	if identity, err := t.identity(); identity == nil || err != nil {
		return err
	}
	return t.verify(context.WithValue(ctx, secretConnKey{}, conn))
}

// readIdentity sends a request of verify. It reads the whole response, so that the connection can be
// used again.
func (t *secretTransport) readIdentity(conn net.Conn, req *http.Request) (*http.Response, error) {
	resp, err := t.roundTripHTTP1(conn, req)
	if err != nil {
		return nil, err
	}
	if resp.Close {
		return nil, errConnNotKept
	}
	body, err := io.ReadAll(limitReader(resp.Body, maxIdentityBytes))
	if err != nil {
		return nil, err //nolint:wrapcheck // as a RoundTripper returns it
	}
	if c, ok := conn.(*tls.Conn); ok {
		state := c.ConnectionState()
		resp.TLS = &state
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (t *secretTransport) roundTripHTTP1(conn net.Conn, req *http.Request) (*http.Response, error) {
	if err := conn.SetDeadline(time.Now().Add(headerTimeout)); err != nil {
		return nil, err
	}
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	source := &wipingConn{Conn: conn, wipe: t.wipe, remaining: maxHeaderBytes}
	br := bufio.NewReaderSize(source, 4<<10)
	resp, err := http.ReadResponse(br, req)
	if err != nil {
		return nil, err //nolint:wrapcheck // as a RoundTripper returns it
	}
	resp.Body = &wipingBody{ReadCloser: resp.Body, br: br, conn: source}
	source.idleTimeout, source.remaining = DefaultIdleTimeout, 0
	return resp, conn.SetDeadline(time.Time{})
}

// DefaultIdleTimeout is how long a response may pause. HTTP/1.1 has no pings, and TCP
// keepalives only show that the next hop is alive, which may be a proxy that lost the
// connection behind it. Watches get a bookmark each minute. A watch that gets none (for
// example because the API server has no watch cache) is restarted from its mark, which
// costs little.
const DefaultIdleTimeout = 75 * time.Second

// maxHeaderBytes bounds a response header, as net/http does.
const maxHeaderBytes = 1 << 20

// wipingConn zeroes the buffer that it reads into before it waits, and the buffer of
// crypto/tls after the read. bufio passes all of its free room to Read, so that this
// zeroes what was taken out of it too.
type wipingConn struct {
	net.Conn
	wipe        *tlsWiper
	idleTimeout time.Duration // for one Read; zero for the connection's own deadline
	remaining   int           // bytes that may still be read; zero for any number
}

func (c *wipingConn) Read(p []byte) (int, error) {
	clear(p)
	if c.idleTimeout > 0 {
		if err := c.SetReadDeadline(time.Now().Add(c.idleTimeout)); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(p)
	if t, ok := c.Conn.(*tls.Conn); ok {
		c.wipe.wipe(t)
	}
	if c.remaining > 0 && n >= c.remaining {
		clear(p)
		return 0, fmt.Errorf("the response header is longer than %d bytes", maxHeaderBytes)
	}
	c.remaining = max(0, c.remaining-n)
	return n, err
}

type wipingBody struct {
	io.ReadCloser // reads from br
	br            *bufio.Reader
	conn          *wipingConn
	stop          func() bool
}

// Close closes the connection and zeroes what is left in the buffers.
func (b *wipingBody) Close() error {
	if b.stop != nil {
		b.stop()
	}
	err := b.conn.Close()
	b.br.Reset(zeroReader{})
	_, _ = b.br.Peek(b.br.Size()) // fills the buffer with zeros; cannot fail
	if t, ok := b.conn.Conn.(*tls.Conn); ok {
		b.conn.wipe.wipeClosed(t)
	}
	return err
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// dial connects to the API server, through a proxy if one is configured.
func (t *secretTransport) dial(ctx context.Context, req *http.Request) (net.Conn, error) {
	if err := t.wipe.check(); err != nil {
		return nil, err
	}
	proxy, err := t.d.proxy()(req)
	if err != nil {
		return nil, err
	}
	conn, err := t.dialRaw(ctx, req.URL, proxy)
	if err != nil || req.URL.Scheme != "https" {
		return conn, err
	}
	cfg := t.d.tls.Clone()
	cfg.NextProtos = []string{"http/1.1"}
	return handshake(ctx, conn, cfg, req.URL.Hostname())
}

func handshake(ctx context.Context, conn net.Conn, cfg *tls.Config, host string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if cfg.ServerName == "" {
		cfg.ServerName = host
	}
	tlsConn := tls.Client(conn, cfg)
	if err := tlsConn.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return tlsConn, nil
}

func (t *secretTransport) dialRaw(ctx context.Context, to, proxy *url.URL) (net.Conn, error) {
	if proxy == nil {
		return t.d.dial(ctx, "tcp", hostPort(to))
	}
	if proxy.Scheme != "http" && proxy.Scheme != "https" {
		return nil, fmt.Errorf("a proxy with scheme %q cannot be used for Secrets: use an http proxy, or leave Secrets out of the kinds",
			proxy.Scheme)
	}
	conn, err := t.d.dial(ctx, "tcp", hostPort(proxy))
	if err != nil {
		return nil, err
	}
	if proxy.Scheme == "https" {
		conn, err = handshake(ctx, conn, &tls.Config{MinVersion: tls.VersionTLS12}, proxy.Hostname())
		if err != nil {
			return nil, err
		}
	}
	return tunnel(ctx, conn, to, proxy)
}

// tunnel connects through a proxy.
func tunnel(ctx context.Context, conn net.Conn, to, proxy *url.URL) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: hostPort(to)}, Host: hostPort(to), Header: http.Header{}}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		login := http.Request{Header: http.Header{}}
		login.SetBasicAuth(u.Username(), password)
		req.Header.Set("Proxy-Authorization", login.Header.Get("Authorization"))
	}
	if err := req.Write(conn); err != nil {
		conn.Close()
		return nil, err
	}
	//nolint:bodyclose // the body of a successful CONNECT is the connection
	resp, err := http.ReadResponse(bufio.NewReader(conn), req) // the proxy sends nothing more until we do
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the proxy %s returned %s", proxy.Host, resp.Status)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	port := "80"
	if u.Scheme == "https" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
