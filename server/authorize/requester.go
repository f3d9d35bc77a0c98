package authorize

import (
	"cmp"
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/textproto"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/readlimit"
)

// Token is the one token that the server knows by itself.
type Token interface{ Presents(*http.Request) bool }

const tokenName = "server.adminToken"

type tokenKey struct{}

// MarkToken marks requests that present the token, for RequesterOf. The token may be nil.
func MarkToken(t Token, next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" && t.Presents(r) {
			r = r.WithContext(context.WithValue(r.Context(), tokenKey{}, true))
		}
		next.ServeHTTP(w, r)
	})
}

// tokenProof is what a request with the token proves.
const tokenProof = "token " + tokenName

// RequesterOf returns who sends a request. A certificate or a token proves a name, which a header never replaces: only a service
// in server.trustedCallers is believed about its users. The token is believed itself, also behind a proxy of a trusted network.
func RequesterOf(r *http.Request) vedette.Requester {
	name, proven := proof(r)
	q := vedette.Requester{Claimed: textproto.TrimString(r.Header.Get(headerPrefix + "User")), Proven: proven, Service: serviceOf(r.Header),
		Address: hostOf(r.RemoteAddr)}
	switch {
	case readlimit.IsTrusted(r) && proven != tokenProof:
		q.Service = cmp.Or(name, q.Service, q.Address)
		q.User = cmp.Or(q.Claimed, name)
	case name != "":
		q.User = name
		if q.Claimed == name { // who proves to be the user is no service that passes the user's request on
			q.Service = ""
		}
	default:
		q.User = q.Claimed
	}
	q.User = cmp.Or(q.User, Anonymous)
	return q
}

// proof returns the name that a request proves, and how; empty if it proves none.
func proof(r *http.Request) (name, proven string) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		certificate := r.TLS.VerifiedChains[0][0]
		return nameOf(certificate), "certificate " + cmp.Or(certificate.Subject.String(), nameOf(certificate))
	}
	if known, _ := r.Context().Value(tokenKey{}).(bool); known {
		return tokenName, tokenProof
	}
	return "", ""
}

// nameOf returns the common name of a certificate, or else the first of its other names.
func nameOf(c *x509.Certificate) string {
	if c.Subject.CommonName != "" {
		return c.Subject.CommonName
	}
	for _, uri := range c.URIs {
		return uri.String()
	}
	for _, name := range slices.Concat(c.DNSNames, c.EmailAddresses) {
		return name
	}
	return cmp.Or(c.Subject.String(), "serial number "+c.SerialNumber.String())
}

// serviceOf returns the service of Spinnaker that added the headers of a request: Orca names the execution, and
// Gate the request or where the user came from. Nobody verifies them.
func serviceOf(h http.Header) string {
	switch {
	case h.Get(headerPrefix+"Execution-Id") != "":
		return "orca"
	case h.Get(headerPrefix+"Request-Id") != "" || h.Get(headerPrefix+"User-Origin") != "":
		return "gate"
	}
	return ""
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
