package watch

import (
	"context"
	"net/http"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch/lifecycle"
)

// get sends a request of this feed whose response ends soon.
func (f *feed) get(ctx context.Context, t kube.Timeouts, r kube.GetRequest) (*http.Response, error) {
	r.WipeBuffers = f.Kind == secretKind
	return f.noteReachable(f.w.c.Get(ctx, t, r))
}

// getStream sends a request of this feed whose response lasts.
func (f *feed) getStream(ctx context.Context, t kube.Timeouts, r kube.GetRequest) (*http.Response, error) {
	r.WipeBuffers = f.Kind == secretKind
	return f.noteReachable(f.w.c.Watch(ctx, t, r))
}

// noteReachable passes a response on. The first response after an outage makes the other
// unreachable feeds retry.
func (f *feed) noteReachable(resp *http.Response, err error) (*http.Response, error) {
	if err == nil {
		for _, effect := range f.step(lifecycle.Reached{}) {
			f.tellOthers(effect)
		}
	}
	return resp, err
}
