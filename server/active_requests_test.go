package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// TestRequestsAreAnsweredWhenTheServerStops checks what becomes of requests that are under way, and of those that come later.
func TestRequestsAreAnsweredWhenTheServerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var a activeRequests
		handler := a.handler(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
				w.WriteHeader(http.StatusTeapot)
			case <-time.After(3 * time.Second):
			}
		}))
		request := func(path string) <-chan int {
			status := make(chan int, 1)
			go func() {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody))
				status <- w.Code
			}()
			synctest.Wait()
			return status
		}
		operation, stream := request("/vedette/v1/operations"), request("/vedette/v1/changes")
		stop()
		if code := <-stream; code != http.StatusTeapot {
			t.Errorf("a stream: got status %d, want that it ends at once", code)
		}
		if code := <-request("/vedette/v1/operations"); code != http.StatusServiceUnavailable {
			t.Errorf("a later request: got status %d, want 503", code)
		}
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		a.drain(limited)
		if took := time.Since(began); took != time.Second {
			t.Errorf("with a limit of a second, requests were awaited for %v", took)
		}
		a.drain(t.Context())
		if took := time.Since(began).Round(100 * time.Millisecond); took != 3*time.Second {
			t.Errorf("requests were awaited for %v, want until the operation has ended after 3s", took)
		}
		if code := <-operation; code != http.StatusOK {
			t.Errorf("the operation: got status %d, want 200", code)
		}
	})
}
