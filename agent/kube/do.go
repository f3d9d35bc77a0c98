package kube

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
)

// Request is a request of an operation.
type Request struct {
	Method      string // empty for GET
	Path        string // below the API server's address, not escaped
	Query       url.Values
	Accept      string // empty for JSON
	ContentType string // of Body
	Body        []byte // not changed; may be nil
	// WipeBuffers sends the request over a connection of its own, whose buffers are
	// zeroed as they are read. Use it for Secrets, because their annotations may hold
	// their data.
	WipeBuffers bool
	// BeforeSend is called just before the request is sent, each time that it is: when there are credentials and a
	// connection whose cluster was verified, which may take long. An error of it prevents that. Nil for none.
	BeforeSend func() error
}

type beforeSendKey struct{}

// beforeSend calls BeforeSend of the request with ctx. An error is an unsentError.
func beforeSend(ctx context.Context) error {
	f, _ := ctx.Value(beforeSendKey{}).(func() error)
	if f == nil {
		return nil
	}
	if err := f(); err != nil {
		return &unsentError{err}
	}
	return nil
}

// interactiveTransport holds the connections for requests that people wait for. Lists
// use other connections, because a list whose reader is blocked fills the window of its
// connection and would block these requests.
type interactiveTransport struct {
	connConfig *connConfig
	transport  *authTransport // nil before the first request
}

// Do sends a request whose response ends soon, and returns the response with any status.
// The caller must close the body. If the API server rejects the credentials, Do
// reloads them and retries once. Errors are explained as by Explain.
func (c *Cluster) Do(ctx context.Context, r Request) (*http.Response, error) {
	resp, err := c.do(ctx, r)
	if err == nil && resp.StatusCode != http.StatusUnauthorized {
		return resp, nil
	}
	if err != nil && !IsCertificateError(err) && StatusCode(err) != http.StatusUnauthorized { // the connection was not verified
		return nil, fmt.Errorf("%s %s: %w", methodOf(r), r.Path, c.Explain(err))
	}
	if err == nil {
		resp.Body.Close()
	}
	c.ReloadCredentials()
	resp, err = c.do(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", methodOf(r), r.Path, c.Explain(err))
	}
	return resp, nil
}

func (c *Cluster) do(ctx context.Context, r Request) (*http.Response, error) {
	rt, err := c.interactiveRoundTripper()
	if r.WipeBuffers {
		rt, err = c.secretRoundTripper()
	}
	if err != nil {
		return nil, err
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	ctx = context.WithValue(ctx, beforeSendKey{}, r.BeforeSend)
	req, err := c.newDoRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := rt.RoundTrip(req)
	if err != nil && !connected.Load() && !r.WipeBuffers { // secretTransport returns an unsentError itself
		err = &unsentError{err}
	}
	return resp, err
}

// unsentError reports that a request was not sent because there was no connection, or
// because the connection broke during the TLS handshake (for example behind a load balancer
// without API servers).
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// Stream sends a request whose response may last, over the connections of watches, so
// that a caller who stops reading does not block other operations. The caller must close
// the body.
func (c *Cluster) Stream(ctx context.Context, r Request) (*http.Response, error) {
	req, err := c.newDoRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := c.roundTripPooled(req)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", methodOf(r), r.Path, c.Explain(err))
	}
	return resp, nil
}

// interactiveRoundTripper returns the transport for the current credentials.
func (c *Cluster) interactiveRoundTripper() (http.RoundTripper, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.interactive.connConfig == c.connConfig {
		return c.interactive.transport, nil
	}
	transport, err := c.newTransport(c.connConfig, requestWindow)
	if err != nil {
		return nil, err
	}
	c.interactive.close()
	c.interactive = interactiveTransport{connConfig: c.connConfig, transport: transport}
	return transport, nil
}

func (c interactiveTransport) close() {
	if c.transport != nil {
		c.transport.conns.CloseIdleConnections()
	}
}

func (c *Cluster) newDoRequest(ctx context.Context, r Request) (*http.Request, error) {
	req, err := c.newRequest(ctx, GetRequest{Path: r.Path, Query: r.Query, Accept: cmp.Or(r.Accept, AcceptJSON)})
	if err != nil || r.Method == "" || r.Method == http.MethodGet {
		return req, err
	}
	req, err = http.NewRequestWithContext(ctx, r.Method, req.URL.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", cmp.Or(r.Accept, AcceptJSON))
	if r.ContentType != "" {
		req.Header.Set("Content-Type", r.ContentType)
	}
	return req, nil
}

func methodOf(r Request) string { return cmp.Or(r.Method, http.MethodGet) }

// MayHaveBeenSent reports whether a request that failed with err may have reached the
// API server. It is false if there was no connection.
func MayHaveBeenSent(err error) bool {
	var opErr *net.OpError
	var dnsErr *net.DNSError
	var unsent *unsentError
	if errors.As(err, &unsent) || errors.As(err, &dnsErr) || errors.As(err, &opErr) && opErr.Op == "dial" {
		return false
	}
	return !IsCertificateError(err)
}
