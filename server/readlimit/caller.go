package readlimit

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/connlimit"
)

// Caller is who pays for a request.
type Caller struct {
	// Source is what a client cannot multiply: its address and its verified certificate. Shares belong to
	// sources.
	Source string
	// User is the user that the request names. It comes from a header that nobody verifies, so users only
	// take turns within their source.
	User string
}

// CallerOf returns the caller of a request. If TrustedCallers trusts the sender, each user that it
// names is a source.
func CallerOf(r *http.Request) Caller {
	c := Caller{sourceOf(r), r.Header.Get("X-Spinnaker-User")}
	if IsTrusted(r) {
		c.Source += " " + c.User
	}
	return c
}

func sourceOf(r *http.Request) string { return SourceOf(r.RemoteAddr, certificateOf(r)) }

// SourceOf returns the address of a client, and the subject of its certificate if it has a verified one. A
// client of IPv6 has 2^64 addresses, so its network counts.
func SourceOf(address string, certificate *x509.Certificate) string {
	source := connlimit.SourceOf(address)
	if certificate != nil {
		source += " " + certificate.Subject.String()
	}
	return source
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// certificateOf returns the verified certificate of a client, or nil.
func certificateOf(r *http.Request) *x509.Certificate {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	return r.TLS.VerifiedChains[0][0]
}

// IsTrusted reports whether what the sender of a request says about its user is believed.
func IsTrusted(r *http.Request) bool {
	trusted, _ := r.Context().Value(trustedKey{}).(bool)
	return trusted
}

type trustedKey struct{}

// TrustedCallers are services that send requests of many users, such as Gate. What they say about the user
// of a request is believed, so that a user's requests delay no other user's. A network is believed only about requests
// without a verified certificate.
type TrustedCallers struct {
	networks []netip.Prefix
	names    []string // common names or DNS names of certificates
}

// ParseTrustedCallers parses a list of addresses, networks, and names in clients' certificates.
func ParseTrustedCallers(list []string) (TrustedCallers, error) {
	var t TrustedCallers
	for _, text := range list {
		network, err := netip.ParsePrefix(text)
		if ip, ipErr := netip.ParseAddr(text); ipErr == nil {
			network, err = netip.PrefixFrom(ip, ip.BitLen()), nil
		}
		switch {
		case err == nil:
			t.networks = append(t.networks, network.Masked())
		case text == "" || strings.ContainsAny(text, "/ "):
			return t, vedette.Errorf(vedette.Invalid, "the trusted caller %.200q is not an address, a network like 10.1.2.0/24, or a name in a certificate", text)
		default:
			t.names = append(t.names, text)
		}
	}
	return t, nil
}

// Handler marks the requests of trusted callers for CallerOf.
func (t TrustedCallers) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t.trusts(r) {
			r = r.WithContext(context.WithValue(r.Context(), trustedKey{}, true))
		}
		next.ServeHTTP(w, r)
	})
}

// trusts decides by the certificate if there is a verified one: it proves who sends the request, and an address that many
// share must not take that back.
func (t TrustedCallers) trusts(r *http.Request) bool {
	if certificate := certificateOf(r); certificate != nil {
		return slices.ContainsFunc(t.names, func(name string) bool {
			return certificate.Subject.CommonName == name || slices.Contains(certificate.DNSNames, name)
		})
	}
	ip, err := netip.ParseAddr(hostOf(r.RemoteAddr))
	return err == nil && slices.ContainsFunc(t.networks, func(n netip.Prefix) bool { return n.Contains(ip.Unmap().WithZone("")) })
}

// String returns the list.
func (t TrustedCallers) String() string {
	var list []string
	for _, n := range t.networks {
		list = append(list, n.String())
	}
	return strings.Join(append(list, t.names...), " ")
}
