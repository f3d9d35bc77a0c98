package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/middleware"
)

// activeRequests knows the requests that are under way, without those whose responses may last for hours.
type activeRequests struct {
	mu      sync.Mutex
	stopped bool
	count   int
}

// handler counts requests. From the end of ctx on it rejects them, and ends streams: a connection that is open already may still
// bring a request, which would find nobody who executes its operation.
func (a *activeRequests) handler(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if api.IsStream(r.URL.Path) {
			streamCtx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			next.ServeHTTP(w, r.WithContext(streamCtx)) //nolint:contextcheck // it is the request's, and ends with the server
			return
		}
		if !a.begin(ctx) {
			w.Header().Set("Connection", "close")
			middleware.Reject(w, r, http.StatusServiceUnavailable, vedette.Unavailable, "the server is stopping, and nothing was done: try again")
			return
		}
		defer a.end()
		next.ServeHTTP(w, r)
	})
}

func (a *activeRequests) begin(ctx context.Context) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped || ctx.Err() != nil {
		return false
	}
	a.count++
	return true
}

func (a *activeRequests) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count--
}

// drain rejects new requests, and waits until the others are answered, or ctx ends.
func (a *activeRequests) drain(ctx context.Context) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !a.stop() {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// stop rejects new requests, and reports whether none is under way.
func (a *activeRequests) stop() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	return a.count == 0
}
