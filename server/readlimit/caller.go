package readlimit

import (
	"net"
	"net/http"
	"strings"
)

// CallerKey names who sent a request, for limits: the user that it names and the
// address that it comes from. Who claims to be many users is many callers; the
// header is believed here as everywhere.
func CallerKey(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return strings.TrimSpace(r.Header.Get("X-Spinnaker-User")) + "@" + host
}
