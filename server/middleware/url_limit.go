package middleware

import (
	"fmt"
	"net/http"

	"github.com/vedette-io/vedette"
)

// MaxURLBytes is four times what Clouddriver's server accepts with its default of 8 KiB for all headers.
const MaxURLBytes = 32 << 10

// LimitURLs rejects requests with long URLs, for all routes alike. What a handler reads from a URL is
// therefore small, whatever it does with it.
func LimitURLs(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := len(r.RequestURI); n > MaxURLBytes {
			Reject(w, r, http.StatusRequestURITooLong, vedette.Invalid, fmt.Sprintf("the URL has %d bytes, more than the limit of %d: "+
				"select by fewer names or by a pattern, or send several requests", n, MaxURLBytes))
			return
		}
		next.ServeHTTP(w, r)
	})
}
