package watch

import (
	"context"
	"net/http"
)

// get sends a request of this feed that ends soon.
func (f *feed) get(ctx context.Context, l timeouts, r getRequest) (*http.Response, error) {
	if f.Kind == secretKind {
		return f.noteReachable(f.w.c.getWiped(ctx, l, r))
	}
	return f.noteReachable(f.w.c.get(ctx, l, r))
}

// getStream sends a request of this feed whose answer lasts.
func (f *feed) getStream(ctx context.Context, l timeouts, r getRequest) (*http.Response, error) {
	if f.Kind == secretKind {
		return f.noteReachable(f.w.c.getWiped(ctx, l, r))
	}
	return f.noteReachable(f.w.c.watch(ctx, l, r))
}

// noteReachable takes an answer. The first one after an outage is news for others too.
func (f *feed) noteReachable(resp *http.Response, err error) (*http.Response, error) {
	if err == nil && f.unreachable.Swap(false) {
		f.w.retryUnreachableFeeds()
	}
	return resp, err
}

// getWiped sends a request over a connection of its own that leaves no trace of
// the answer in memory. The caller closes the body.
func (c *Cluster) getWiped(ctx context.Context, l timeouts, r getRequest) (*http.Response, error) {
	return checkStatus(l.send(ctx, func(ctx context.Context) (*http.Response, error) {
		req, err := c.newRequest(ctx, r)
		if err != nil {
			return nil, err
		}
		rt, err := c.secretRoundTripper()
		if err != nil {
			return nil, err
		}
		return rt.RoundTrip(req)
	}))
}

func (c *Cluster) secretRoundTripper() (http.RoundTripper, error) {
	d := c.currentConnConfig()
	return d.withAuth(secretTransport{d})
}
