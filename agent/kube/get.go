package kube

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"sync"
)

// The values of Accept for the forms in which API servers answer.
const (
	AcceptJSON         = "application/json"
	AcceptMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	AcceptMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// GetRequest is a GET request for a list, a watch or discovery.
type GetRequest struct {
	Path   string
	Query  url.Values
	Accept string
	Header http.Header // additional header fields; may be nil
	// WipeBuffers sends the request over a connection of its own, whose buffers are
	// zeroed as they are read. Use it for Secrets, because their annotations may hold
	// their data.
	WipeBuffers bool
	// OnConn is called with the connection that carries the response, if others can be sent over it
	// meanwhile; nil for none.
	OnConn func(*Conn)
}

// Get sends a request whose response ends soon. A status other than 200 and 304 is a
// *StatusError. The caller must close the body.
func (c *Cluster) Get(ctx context.Context, t Timeouts, r GetRequest) (*http.Response, error) {
	return c.get(ctx, t, r, func(req *http.Request) (*http.Response, error) {
		return c.listTransport().RoundTrip(req)
	})
}

func (c *Cluster) listTransport() *authTransport {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists
}

// Watch sends a request whose response lasts. It uses the connections of watches. The
// caller must close the body.
func (c *Cluster) Watch(ctx context.Context, t Timeouts, r GetRequest) (*http.Response, error) {
	return c.get(ctx, t, r, c.roundTripPooled)
}

func (c *Cluster) get(ctx context.Context, t Timeouts, r GetRequest, roundTrip func(*http.Request) (*http.Response, error)) (*http.Response,
	error) {
	return checkStatus(t.send(ctx, func(ctx context.Context) (*http.Response, error) {
		if r.OnConn != nil {
			ctx = withConnObserver(ctx, r.OnConn)
		}
		req, err := c.newRequest(ctx, r)
		if err != nil {
			return nil, err
		}
		if !r.WipeBuffers {
			return roundTrip(req)
		}
		rt, err := c.secretRoundTripper()
		if err != nil {
			return nil, err
		}
		return rt.RoundTrip(req)
	}))
}

func (c *Cluster) newRequest(ctx context.Context, r GetRequest) (*http.Request, error) {
	u := *c.base
	u.Path += r.Path
	u.RawQuery = r.Query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, r.Header)
	req.Header.Set("Accept", r.Accept)
	return req, nil
}

// roundTripPooled sends a request over a connection of the pool. Closing the body
// gives the stream back to the pool.
func (c *Cluster) roundTripPooled(req *http.Request) (*http.Response, error) {
	conn, err := c.conns.acquire()
	if err != nil {
		return nil, err
	}
	resp, err := conn.roundTrip(req)
	if err != nil {
		c.conns.release(conn)
		return nil, err
	}
	resp.Body = &pooledBody{ReadCloser: resp.Body, release: sync.OnceFunc(func() {
		c.conns.endRequest()
		c.conns.release(conn)
	})}
	return resp, nil
}

func (c *Cluster) secretRoundTripper() (http.RoundTripper, error) {
	d := c.currentConnConfig()
	t := &secretTransport{d: d, wipe: c.wipe, identity: c.identity.expected}
	rt, err := d.withAuth(t)
	t.verify = func(ctx context.Context) error {
		_, err := c.verify(ctx, rt)
		return err
	}
	return rt, err
}

type pooledBody struct {
	io.ReadCloser
	release func()
}

// Close closes the body and releases its stream.
func (b *pooledBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// checkStatus returns a response that can be read, and turns any other into an error.
func checkStatus(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNotModified {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, readStatus(resp)
}
