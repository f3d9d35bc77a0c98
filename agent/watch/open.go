package watch

import (
	"context"
	"net/http"
)

// get sends a request of this feed that ends soon.
func (f *feed) get(ctx context.Context, l limits, r request) (*http.Response, error) {
	if f.Kind == secretKind {
		return f.heard(f.w.c.wiped(ctx, l, r))
	}
	return f.heard(f.w.c.get(ctx, l, r))
}

// open sends a request of this feed whose answer lasts.
func (f *feed) open(ctx context.Context, l limits, r request) (*http.Response, error) {
	if f.Kind == secretKind {
		return f.heard(f.w.c.wiped(ctx, l, r))
	}
	return f.heard(f.w.c.watch(ctx, l, r))
}

// heard takes an answer. The first one after an outage is news for others too.
func (f *feed) heard(resp *http.Response, err error) (*http.Response, error) {
	if err == nil && f.away.Swap(false) {
		f.w.isBack()
	}
	return resp, err
}

// wiped sends a request over a connection of its own that leaves no trace of
// the answer in memory. The caller closes the body.
func (c *Cluster) wiped(ctx context.Context, l limits, r request) (*http.Response, error) {
	return accepted(l.send(ctx, func(ctx context.Context) (*http.Response, error) {
		req, err := c.newRequest(ctx, r)
		if err != nil {
			return nil, err
		}
		rt, err := c.forSecrets()
		if err != nil {
			return nil, err
		}
		return rt.RoundTrip(req)
	}))
}

func (c *Cluster) forSecrets() (http.RoundTripper, error) {
	d := c.dialed()
	return d.signed(secretTransport{d})
}
