package middleware

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

// GuardHost protects a server that listens on a loopback address against DNS rebinding: a web page
// whose host name resolves to 127.0.0.1 after the browser has loaded it. The browser treats the
// server as the page's own origin then, so the page could read and operate everything. The page
// cannot change the Host header, therefore GuardHost rejects requests for host names that are not
// trusted.
//
// A server that listens on other addresses is returned unchanged, because Services and proxies give
// it names that it does not know.
func GuardHost(next http.Handler, address net.Addr, hosts []string) http.Handler {
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

// isTrustedHost reports whether an attacker cannot own a host name: browsers do not look up IP
// addresses and localhost in DNS. An empty host is trusted because browsers always send one.
func isTrustedHost(host string) bool {
	if host == "" || strings.EqualFold(host, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

func rejectHost(w http.ResponseWriter, r *http.Request, host string) {
	message := fmt.Sprintf("host name %.100q is not allowed, because this server listens on a loopback address only "+
		"and web pages of other sites must not reach it: use an IP address or localhost. "+
		"If a proxy on this machine uses that name, add it to server.hosts", host)
	Reject(w, r, http.StatusForbidden, vedette.Denied, message)
}

// Reject answers a request with an error in the format of the path's API.
func Reject(w http.ResponseWriter, r *http.Request, status int, kind vedette.ErrorKind, message string) {
	body := map[string]any{"status": status, "error": http.StatusText(status), "message": message}
	if strings.HasPrefix(r.URL.Path, "/vedette/") {
		body = map[string]any{"error": map[string]any{"kind": kind, "message": message}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client may have disconnected.
	_ = json.NewEncoder(w).Encode(body)
}
