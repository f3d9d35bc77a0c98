package server

import (
	"fmt"
	"net/http"

	"github.com/vedette-io/vedette"
)

const (
	// maxURLBytes is four times what Clouddriver's server accepts with its default of 8 KiB for all headers.
	maxURLBytes = 32 << 10
	// maxHeaderBytes limits the request line and all headers together, before a handler sees them. The
	// largest is X-SPINNAKER-ACCOUNTS, with each account that a user may use: 128 KiB are 3,000 to 4,000.
	maxHeaderBytes = 128 << 10
)

// limitURLs rejects requests with long URLs, for all routes alike. What a handler reads from a URL is
// therefore small, whatever it does with it.
func limitURLs(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := len(r.RequestURI); n > maxURLBytes {
			writeRejection(w, r, http.StatusRequestURITooLong, vedette.Invalid, fmt.Sprintf("the URL has %d bytes, more than the limit of %d: "+
				"select by fewer names or by a pattern, or send several requests", n, maxURLBytes))
			return
		}
		next.ServeHTTP(w, r)
	})
}
