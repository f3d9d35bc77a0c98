package client

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/keypair"
)

// TokenSource returns the bearer token of a request.
type TokenSource func(ctx context.Context) (string, error)

// Options say how to reach a server. The zero value means the server on this machine.
type Options struct {
	Server string // for example "https://vedette.example.com:7002"; empty for DefaultServer
	TLS    keypair.ClientTLS
	Token  TokenSource // nil sends no token
	// User and UserAccounts are those of Client.
	User, UserAccounts string
}

// NewWithOptions returns a client. The error is vedette.Invalid if the options are not valid, or
// name files that cannot be read.
func NewWithOptions(o Options) (*Client, error) {
	base, err := parseServer(o.Server)
	if err != nil {
		return nil, err
	}
	if err := o.validate(base); err != nil {
		return nil, err
	}
	transportNoTimeout := http.DefaultTransport.(*http.Transport).Clone()
	if base.Scheme == "https" {
		transportNoTimeout.TLSClientConfig, err = o.TLS.TLSConfig()
		if err != nil {
			return nil, vedette.Errorf(vedette.Invalid, "%w", err)
		}
	}
	transport := transportNoTimeout.Clone()
	transport.ResponseHeaderTimeout = 60 * time.Second
	return &Client{User: o.User, UserAccounts: o.UserAccounts, base: strings.TrimRight(base.String(), "/"),
		http:          &http.Client{Transport: o.withToken(base, transport)},
		httpNoTimeout: &http.Client{Transport: o.withToken(base, transportNoTimeout)},
	}, nil
}

// Check returns why NewWithOptions would fail.
func (o Options) Check() error {
	_, err := NewWithOptions(o)
	return err
}

// CheckServer checks the address of a server.
func CheckServer(server string) error {
	_, err := parseServer(server)
	return err
}

func parseServer(server string) (*url.URL, error) {
	if server == "" {
		server = DefaultServer
	}
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, vedette.Errorf(vedette.Invalid, "the server address %q is not a URL, for example %s", server, DefaultServer)
	}
	return u, nil
}

// validate rejects options that would have no effect, and tokens that others could read.
func (o Options) validate(base *url.URL) error {
	isTLS := base.Scheme == "https"
	switch {
	case !isTLS && o.TLS != (keypair.ClientTLS{}):
		return vedette.Errorf(vedette.Invalid, "certificates have no effect without TLS: begin the address of the server with https://, got %s", base.Redacted())
	case o.TLS.KeyPair.Key != "" && o.TLS.KeyPair.Cert == "":
		return vedette.Errorf(vedette.Invalid, "a key needs its certificate: use --cert too")
	case o.Token != nil && !isTLS && !isLoopback(base.Hostname()):
		return vedette.Errorf(vedette.Invalid, "a token is not sent without TLS, because others could read it: begin the address of the server with https://, got %s",
			base.Redacted())
	}
	return nil
}

func isLoopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

func (o Options) withToken(base *url.URL, transport http.RoundTripper) http.RoundTripper {
	if o.Token == nil {
		return transport
	}
	return &tokenTransport{transport, base, o.Token}
}

// tokenTransport adds a bearer token to requests of one server. A redirect to another server does
// not get it.
type tokenTransport struct {
	http.RoundTripper
	base  *url.URL
	token TokenSource
}

// RoundTrip implements http.RoundTripper.
func (t *tokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != t.base.Scheme || r.URL.Host != t.base.Host {
		return t.RoundTripper.RoundTrip(r)
	}
	token, err := t.token(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return t.RoundTripper.RoundTrip(r)
}
