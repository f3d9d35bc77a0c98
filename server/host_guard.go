package server

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// hostGuard keeps pages of other sites away from a server that only its own
// machine can reach. Such a page may have a name whose address becomes 127.0.0.1
// once a browser has loaded it. To the browser the server is the page's own site
// then, so that nothing is cross-origin, and the page may read and operate all
// that the server may. What such a page can't help is that its name stands in the
// Host header.
//
// A server that others can reach is known by names that it can't know, of
// Services and proxies, and is returned as it is.
func hostGuard(next http.Handler, address net.Addr, hosts []string) http.Handler {
	tcp, ok := address.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := stripPort(r.Host)
		if isTrustedHost(host) || slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(stripPort(h), host) }) {
			next.ServeHTTP(w, r)
			return
		}
		rejectHost(w, r, host)
	})
}

// stripPort returns a host without its port.
func stripPort(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return strings.TrimSuffix(host, ".")
}

// isTrustedHost reports whether a name can't be of somebody else's making: browsers
// never ask a name server for these. No browser leaves it out.
func isTrustedHost(host string) bool {
	if host == "" || strings.EqualFold(host, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// rejectHost answers in the form that the errors of the path have.
func rejectHost(w http.ResponseWriter, r *http.Request, host string) {
	message := fmt.Sprintf("the server was called %.100q, and may be called by an IP address or localhost: "+
		"it listens on the loopback address only, where pages of other sites must not reach it. "+
		"If that is its name, of a proxy on this machine perhaps, list it in server.hosts", host)
	body := map[string]any{"status": http.StatusForbidden, "error": http.StatusText(http.StatusForbidden), "message": message}
	if strings.HasPrefix(r.URL.Path, "/vedette/") {
		body = map[string]any{"error": map[string]any{"kind": vedette.Denied, "message": message}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	// The reader may be gone; there is no one else to tell.
	_ = json.NewEncoder(w).Encode(body)
}
