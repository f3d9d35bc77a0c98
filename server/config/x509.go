package config

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
)

// X509 accepts agents by the subjects of their certificates, in addition to the authority that signed them.
type X509 struct {
	// Accept only certificates whose subject matches a filter. Requires grpc.server.security.clientAuth: REQUIRE.
	Enabled bool `config:"enabled" default:"false"`
	// Regular expressions (RE2) that match the whole subject of a certificate, in the form CN=agent-1,OU=platform or in
	// the opposite order.
	Filters []string `config:"filters"`
}

func (c *Config) checkX509(to configfile.Checker) {
	x := c.GRPC.Auth.X509
	if !x.Enabled {
		if len(x.Filters) > 0 {
			to.Notice("filters", "%s are set, but %s is not true: the subjects of certificates are not compared", to.Path("filters"), to.Path("enabled"))
		}
		return
	}
	if !c.GRPC.Server.Security.authenticates() {
		to.Problem("enabled", " is true, but %q is not REQUIRE: agents without a certificate would be accepted", "grpc.server.security.clientAuth")
	}
	if len(x.Filters) == 0 {
		to.Problem("enabled", " is true, but %q is empty: no agent could connect", to.Path("filters"))
	}
	for i, filter := range x.Filters {
		if _, err := regexp.Compile(wholeSubject(filter)); err != nil {
			to.Problem("filters", "[%d] must be a regular expression of RE2, which has no lookahead, got %.100q: %s", i, filter, err)
		}
	}
}

// wholeSubject returns an expression that matches whole subjects: a filter CN=agent must not accept
// CN=agent-of-somebody-else.
func wholeSubject(filter string) string { return "^(?:" + filter + ")$" }

// TLSConfig returns the TLS configuration of the port for agents, or nil for plaintext. Certificates
// and authorities are reloaded when their files change.
func (g GRPC) TLSConfig() (*tls.Config, error) {
	config, err := g.Server.tlsConfig()
	if err != nil || config == nil || !g.Auth.X509.Enabled {
		return config, err
	}
	filters := make([]*regexp.Regexp, len(g.Auth.X509.Filters))
	for i, filter := range g.Auth.X509.Filters {
		if filters[i], err = regexp.Compile(wholeSubject(filter)); err != nil {
			return nil, fmt.Errorf("grpc.auth.x509.filters: %w", err)
		}
	}
	config.VerifyConnection = func(state tls.ConnectionState) error { return checkSubject(state, filters) }
	return config, nil
}

// checkSubject rejects a client whose subject matches no filter. The error says to operators what to
// change.
func checkSubject(state tls.ConnectionState, filters []*regexp.Regexp) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the agent didn't provide a certificate")
	}
	subject := state.PeerCertificates[0].Subject
	forward, backward := subject.String(), reversed(subject)
	if slices.ContainsFunc(filters, func(f *regexp.Regexp) bool { return f.MatchString(forward) || f.MatchString(backward) }) {
		return nil
	}
	return vedette.Errorf(vedette.Denied,
		"the subject of the agent's certificate, %.200q, matches none of grpc.auth.x509.filters: add a filter, or issue the agent a certificate with another subject", forward)
}

// reversed returns a subject in the opposite order of its parts, because tools differ in it.
func reversed(subject pkix.Name) string {
	parts := subject.ToRDNSequence()
	slices.Reverse(parts)
	return parts.String()
}
