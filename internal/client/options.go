package client

import (
	"context"
	"encoding/base64"
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
	login := base.User
	base.User = nil // so that nothing that prints the address prints it
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
		http:          &http.Client{Transport: o.withCredentials(base, login, transport)},
		httpNoTimeout: &http.Client{Transport: o.withCredentials(base, login, transportNoTimeout)},
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
	// An @ in the path is that of a login after a missing slash, as in http:/user:password@host.
	if err != nil || u.Host == "" || strings.Contains(u.Path, "@") || u.Scheme != "http" && u.Scheme != "https" {
		return nil, vedette.Errorf(vedette.Invalid, "the server address %q is not a URL, for example %s", WithoutLogin(server), DefaultServer)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, vedette.Errorf(vedette.Invalid, "the server address %q must end with its path, without ? and #", WithoutLogin(server))
	}
	return u, nil
}

// WithoutLogin returns an address as it may be printed: without the user, which may be a token, the
// password and the query. It accepts texts that are not URLs too, because errors quote them.
func WithoutLogin(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		scheme, rest = "", address
	} else {
		scheme += "://"
	}
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		rest = "***" + rest[i:]
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i+1] + "***"
	}
	return scheme + rest
}

// validate rejects options that would have no effect, and tokens that others could read.
func (o Options) validate(base *url.URL) error {
	isTLS := base.Scheme == "https"
	switch {
	case !isTLS && o.TLS != (keypair.ClientTLS{}):
		return vedette.Errorf(vedette.Invalid, "certificates have no effect without TLS: begin the address of the server with https://, got %s", base)
	case o.TLS.KeyPair.Key != "" && o.TLS.KeyPair.Cert == "":
		return vedette.Errorf(vedette.Invalid, "a key needs its certificate: use --cert too")
	case o.Token != nil && !isTLS && !isLoopback(base.Hostname()):
		return vedette.Errorf(vedette.Invalid, "a token is not sent without TLS, because others could read it: begin the address of the server with https://, got %s",
			base)
	}
	return nil
}

func isLoopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

// withCredentials returns a transport that sends the token, or else the user and the password of
// the address.
func (o Options) withCredentials(base *url.URL, login *url.Userinfo, transport http.RoundTripper) http.RoundTripper {
	switch {
	case o.Token != nil:
		return &credentialTransport{transport, base, func(ctx context.Context) (string, error) {
			token, err := o.Token(ctx)
			return "Bearer " + token, err
		}}
	case login != nil:
		password, _ := login.Password()
		value := "Basic " + base64.StdEncoding.EncodeToString([]byte(login.Username()+":"+password))
		return &credentialTransport{transport, base, func(context.Context) (string, error) { return value, nil }}
	}
	return transport
}

// credentialTransport adds the header Authorization to requests of one server. A redirect to another
// server does not get it.
type credentialTransport struct {
	http.RoundTripper
	base          *url.URL
	authorization func(context.Context) (string, error)
}

func (t *credentialTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != t.base.Scheme || r.URL.Host != t.base.Host {
		return t.RoundTripper.RoundTrip(r)
	}
	authorization, err := t.authorization(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", authorization)
	return t.RoundTripper.RoundTrip(r)
}
