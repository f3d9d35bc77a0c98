package watch

import (
	"context"
	"net/http"
)

// get sends a request of this feed that ends soon.
func (f *feed) get(ctx context.Context, r request) (*http.Response, error) {
	return f.w.c.get(ctx, r)
}

// open sends a request of this feed whose answer lasts.
func (f *feed) open(ctx context.Context, r request) (*http.Response, error) {
	return f.w.c.watch(ctx, r)
}
