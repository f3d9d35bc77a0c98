package watch

import (
	"context"
	"net/http"
)

// get sends a request of this feed that ends soon.
func (f *feed) get(ctx context.Context, r request) (*http.Response, error) {
	if f.Kind == secretKind {
		return f.heard(f.w.c.wiped(ctx, r))
	}
	return f.heard(f.w.c.get(ctx, r))
}

// open sends a request of this feed whose answer lasts.
func (f *feed) open(ctx context.Context, r request) (*http.Response, error) {
	if f.Kind == secretKind {
		return f.heard(f.w.c.wiped(ctx, r))
	}
	return f.heard(f.w.c.watch(ctx, r))
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
func (c *Cluster) wiped(ctx context.Context, r request) (*http.Response, error) {
	req, err := c.newRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	rt, err := c.forSecrets()
	if err != nil {
		return nil, err
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	return accepted(resp)
}

func (c *Cluster) forSecrets() (http.RoundTripper, error) {
	d := c.dialed()
	return d.signed(secretTransport{d})
}
