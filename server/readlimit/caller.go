package readlimit

import (
	"net"
	"net/http"
	"strings"
)

// CallerKey returns the caller of a request, for limits: its user and its address. The user comes
// from an unverified header, so one client can claim to be several callers.
func CallerKey(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return strings.TrimSpace(r.Header.Get("X-Spinnaker-User")) + "@" + host
}
