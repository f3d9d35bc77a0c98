package middleware

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
)

// identityHeaders name the caller.
var identityHeaders = [...]string{"X-Spinnaker-User", "X-Spinnaker-Accounts"}

// maxUserBytes is the longest user that the database keeps whole. A longer one would be cut, and then equal to others.
const maxUserBytes = 255

// RejectAmbiguousIdentity rejects requests whose user is too long to be told from others, and requests that
// name different callers. Spring reads the first header of several, and proxies may join them, so another service
// could decide for another user. A caller that is named twice is one: Orca does that, because two of its interceptors
// add the headers.
func RejectAmbiguousIdentity(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range identityHeaders {
			if len(r.Header[name]) > 1 {
				r.Header[name] = slices.Compact(r.Header[name])
			}
			if len(r.Header[name]) > 1 {
				Reject(w, r, http.StatusBadRequest, vedette.Invalid, fmt.Sprintf("the header %s must have one value, because services read only one of several", name))
				return
			}
		}
		if n := len(r.Header.Get(identityHeaders[0])); n > maxUserBytes {
			Reject(w, r, http.StatusBadRequest, vedette.Invalid,
				fmt.Sprintf("the user in the header %s has %d bytes, more than %d", identityHeaders[0], n, maxUserBytes))
			return
		}
		next.ServeHTTP(w, r)
	})
}
