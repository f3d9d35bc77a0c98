// Package admin is what the endpoints for operators of both programs have in common: who may use
// them, Go's profiles, and lists.
package admin

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

// Guard decides who may use endpoints for operators: requests from this machine (or pod), with a
// verified client certificate, or with the token. The zero value has no token.
type Guard struct {
	Token     string       // the token; empty for that of TokenFile
	TokenFile string       // file with the token, which is read for each request, so that it can be rotated
	Log       *slog.Logger // gets the errors of reading TokenFile; nil discards them
	// IgnoreCertificates is for ports where certificates do not distinguish operators from others.
	IgnoreCertificates bool
}

// MinTokenBytes is the shortest token. Shorter ones could be guessed.
const MinTokenBytes = 16

// maxTokenBytes bounds a file with a token.
const maxTokenBytes = 4 << 10

// HasToken reports whether other machines can be trusted without a certificate.
func (g Guard) HasToken() bool { return g.Token != "" || g.TokenFile != "" }

// Trusts reports whether the sender of a request may see details.
func (g Guard) Trusts(r *http.Request) bool {
	isVerified := r.TLS != nil && len(r.TLS.VerifiedChains) > 0
	return isVerified && !g.IgnoreCertificates || isLocal(r) || g.Presents(r)
}

// isLocal reports whether a request comes from a program on this machine, and was sent for its own
// user. A request also arrives from the loopback address if a proxy on this machine forwards it for
// somebody else, or if a web page asks the visitor's browser to send it.
func isLocal(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && isOwnAddress(from.Addr()) && isLoopbackHost(r.Host) && !isForwarded(r.Header) && !isCrossSite(r)
}

// isOwnAddress reports whether an address is one from which programs connect to this machine. Other
// loopback addresses are those of proxies: Istio's delivers what it gets from other pods from
// 127.0.0.6.
func isOwnAddress(from netip.Addr) bool {
	from = from.Unmap()
	return from == netip.IPv6Loopback() || from == netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// isLoopbackHost reports whether the Host of a request is a loopback name. Another one may be that of a
// web page in a browser (DNS rebinding).
func isLoopbackHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	to, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && to.Unmap().IsLoopback()
}

// forwardedHeaders are those that proxies add. Whoever sends one without a proxy gains nothing.
var forwardedHeaders = [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via",
	"X-Envoy-External-Address", "X-Envoy-Internal"}

func isForwarded(header http.Header) bool {
	for _, name := range forwardedHeaders {
		if len(header.Values(name)) > 0 {
			return true
		}
	}
	return false
}

// isCrossSite reports whether a browser sent the request for a page of another site. Such a page
// cannot read the response, but a profile costs processor time.
func isCrossSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != r.Host
}

// Presents reports whether a request has the token.
func (g Guard) Presents(r *http.Request) bool {
	scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !g.HasToken() || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	token, err := g.ReadToken()
	if err != nil {
		g.logError(err)
		return false
	}
	return subtle.ConstantTimeCompare([]byte(strings.TrimSpace(sent)), []byte(token)) == 1
}

// ReadToken returns the token; "" if there is none. One from a file is never empty.
func (g Guard) ReadToken() (string, error) {
	if g.Token != "" || g.TokenFile == "" {
		return g.Token, nil
	}
	file, err := os.Open(g.TokenFile)
	if err != nil {
		return "", fmt.Errorf("open the file: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxTokenBytes+1))
	if err != nil {
		return "", fmt.Errorf("read the file: %w", err)
	}
	token := strings.TrimSpace(string(content))
	if len(token) < MinTokenBytes || len(content) > maxTokenBytes {
		return "", fmt.Errorf("the token must have %d to %d bytes, got %d", MinTokenBytes, maxTokenBytes, len(token))
	}
	return token, nil
}

func (g Guard) logError(err error) {
	if g.Log != nil {
		g.Log.Warn("request for operators rejected: cannot read the token", "file", g.TokenFile, "error", err)
	}
}

// Check returns why the token cannot be used.
func (g Guard) Check() error {
	switch {
	case g.Token != "" && g.TokenFile != "":
		return errors.New("a token and a file with a token are set: remove one")
	case g.Token != "" && len(g.Token) < MinTokenBytes:
		return fmt.Errorf("the token has %d bytes: use at least %d, because shorter ones can be guessed", len(g.Token), MinTokenBytes)
	}
	return nil
}

// Require returns a handler that serves only requests that the guard trusts.
func (g Guard) Require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.Trusts(r) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="vedette"`)
		WriteError(w, http.StatusUnauthorized, "this path is for operators: send the header Authorization: Bearer with server.adminToken, "+
			"or send the request from the same machine or pod, to localhost")
	})
}

// WriteError writes an error.
func WriteError(w http.ResponseWriter, status int, message string) {
	WriteJSON(w, status, map[string]string{"error": message})
}

// WriteJSON writes a response.
func WriteJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error means that the client is gone
}
