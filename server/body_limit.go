package server

import (
	"fmt"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/readlimit"
)

// bodyBytes limits the memory of all request bodies together. Each handler limits its own, but many
// callers at once could fill the memory.
const bodyBytes = 128 << 20

// maxBodyBytes is what a body counts as if its length is not known. No handler keeps a larger one.
const maxBodyBytes = 32 << 20

// limitBodies reserves memory for the body of a request until the request has ended. Requests wait
// for each other, and are rejected if that takes too long.
func limitBodies(limiter *readlimit.Limiter, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := r.ContentLength
		if size == 0 {
			next.ServeHTTP(w, r)
			return
		}
		if size < 0 || size > maxBodyBytes {
			size = maxBodyBytes
		}
		release, err := limiter.Acquire(r.Context(), readlimit.CallerKey(r), size)
		if err != nil {
			w.Header().Set("Retry-After", "1")
			writeRejection(w, r, http.StatusServiceUnavailable, vedette.Unavailable, fmt.Sprintf("the bodies of other requests have used "+
				"all %d MiB that this server has for them: try again, and send fewer large requests at a time", bodyBytes>>20))
			return
		}
		defer release()
		next.ServeHTTP(w, r)
	})
}
