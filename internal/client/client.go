// Package client is a client of a server's API, /vedette/v1, for the command line.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/vedette-io/vedette"
)

// Client is a client of one server.
type Client struct {
	// User is the Spinnaker user on whose behalf requests are sent; empty for an
	// anonymous user. It must not be changed during a request.
	User string
	// UserAccounts are the accounts that User may change, separated by commas. A server
	// without Fiat trusts this list, as it trusts Gate. It must not be changed during a
	// request.
	UserAccounts string

	base          string
	http          *http.Client
	httpNoTimeout *http.Client // for requests whose response may take long
}

// DefaultServer is the address of a server on this machine.
const DefaultServer = "http://localhost:7002"

// New returns a client of the server at an address, for example
// "http://localhost:7002". Without a scheme, http is used.
func New(server string) (*Client, error) { return NewWithOptions(Options{Server: server}) }

// Server returns the address of the server.
func (c *Client) Server() string { return c.base }

// Transport returns what sends the client's requests, with its certificates and its token.
func (c *Client) Transport() http.RoundTripper { return c.http.Transport }

// get decodes a JSON response into v.
func (c *Client) get(ctx context.Context, path string, query url.Values, v any) error {
	response, err := c.do(ctx, path, query, "application/json")
	if err != nil {
		return err
	}
	return c.decode(response, path, v)
}

// decode decodes a JSON response into v, and closes it.
func (c *Client) decode(response *http.Response, path string, v any) error {
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(v); err != nil {
		return fmt.Errorf("read the response of %s: %w", c.base+path, err)
	}
	return nil
}

// do returns a successful response. The caller must close its body.
func (c *Client) do(ctx context.Context, path string, query url.Values, accept string) (*http.Response, error) {
	return c.doWith(ctx, c.http, path, query, accept)
}

func (c *Client) doWith(ctx context.Context, client *http.Client, path string, query url.Values, accept string) (*http.Response, error) {
	address := c.base + "/vedette/v1" + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("send a request to %s: %w", address, err)
	}
	request.Header.Set("Accept", accept)
	return c.send(client, request)
}

// send sends a request, and returns a successful response. The caller must close its body.
func (c *Client) send(client *http.Client, request *http.Request) (*http.Response, error) {
	c.setHeaders(request)
	response, err := client.Do(request)
	if err != nil {
		return nil, c.connectionFailed(err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, c.responseError(response)
	}
	return response, nil
}

func (c *Client) setHeaders(request *http.Request) {
	request.Header.Set("User-Agent", "vedette")
	if c.User != "" {
		request.Header.Set("X-SPINNAKER-USER", c.User)
	}
	if c.UserAccounts != "" {
		request.Header.Set("X-SPINNAKER-ACCOUNTS", c.UserAccounts)
	}
}

// connectionFailed returns an error that names the address and says what to do.
func (c *Client) connectionFailed(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the message below has the address
	}
	if vedette.KindOf(err) != "" { // there is no token
		return err
	}
	if advice := protocolAdvice(err); advice != "" {
		return vedette.Errorf(vedette.Unavailable, "connect to %s: %w: %s", c.base, err, advice)
	}
	const advice = "start a server with `vedette up`, or name another with --server, VEDETTE_SERVER or `vedette config use-context`"
	if isConnectionRefused(err) {
		return vedette.Errorf(vedette.Unavailable, "nothing listens at %s (%w): %s", c.base, err, advice)
	}
	return vedette.Errorf(vedette.Unavailable, "the server at %s cannot be reached: %w: %s", c.base, err, advice)
}

// protocolAdvice returns what to do about an error of TLS or of another protocol than HTTP, or "" for other errors. The texts are the
// only way to tell alerts of the server apart.
func protocolAdvice(err error) string {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch text := err.Error(); {
	case errors.As(err, &certificate):
		return "name the authority of the server's certificate with --cacert"
	case errors.As(err, &record), strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "the server does not use TLS: begin its address with http://"
	case strings.Contains(text, "malformed HTTP response"):
		return "it is not the port of the REST API, which is 7002 by default, or the server uses TLS: then begin its address with https://"
	case strings.Contains(text, "certificate required"):
		return "the server requires a client certificate: name one with --cert and --key"
	case strings.Contains(text, "remote error: tls:"):
		return "the server rejects the client certificate: use one that an authority of the server has signed, with --cert and --key"
	}
	return ""
}

func isConnectionRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// errorBody is an error of the API.
type errorBody struct {
	Error struct{ Kind, Message, ID string }
}

// responseError returns the error in a response. A response without an error of the API
// comes from another program, for example a proxy in front of the server.
func (c *Client) responseError(response *http.Response) error {
	var body errorBody
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // a truncated body fails below
	if bytes.Contains(text, []byte("HTTP request to an HTTPS server")) {
		return vedette.Errorf(vedette.Unavailable, "%s uses TLS: begin its address with https://", c.base)
	}
	if json.Unmarshal(text, &body) != nil || body.Error.Message == "" {
		return vedette.Errorf(vedette.Unavailable, "%s answered %q, which is not the response of a Vedette server: check the address", c.base,
			response.Status)
	}
	if body.Error.ID != "" {
		return vedette.Errorf(vedette.Unavailable, "the server failed (%s): see its log for id %s", body.Error.Message, body.Error.ID)
	}
	return vedette.Errorf(vedette.ErrorKind(body.Error.Kind), "%s", body.Error.Message)
}
