// Package client is a client of a server's API, /vedette/v1, for the command line.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

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
func New(server string) (*Client, error) {
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
	transportNoTimeout := http.DefaultTransport.(*http.Transport).Clone()
	transport := transportNoTimeout.Clone()
	transport.ResponseHeaderTimeout = 60 * time.Second
	return &Client{base: strings.TrimRight(u.String(), "/"), http: &http.Client{Transport: transport},
		httpNoTimeout: &http.Client{Transport: transportNoTimeout}}, nil
}

// Server returns the address of the server.
func (c *Client) Server() string { return c.base }

// get decodes a JSON response into v.
func (c *Client) get(ctx context.Context, path string, query url.Values, v any) error {
	response, err := c.do(ctx, path, query, "application/json")
	if err != nil {
		return err
	}
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
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // the message below has the address
	}
	const advice = "start a server with `vedette up`, or name another with --server or VEDETTE_SERVER"
	if isConnectionRefused(err) {
		return vedette.Errorf(vedette.Unavailable, "nothing listens at %s (%w): %s", c.base, err, advice)
	}
	return vedette.Errorf(vedette.Unavailable, "the server at %s cannot be reached: %w: %s", c.base, err, advice)
}

func isConnectionRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// responseError returns the error in a response. A response without an error of the API
// comes from another program, for example a proxy in front of the server.
func (c *Client) responseError(response *http.Response) error {
	var body struct {
		Error struct{ Kind, Message, ID string }
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // a truncated body fails below
	if json.Unmarshal(text, &body) != nil || body.Error.Message == "" {
		return vedette.Errorf(vedette.Unavailable, "%s answered %q, which is not the response of a Vedette server: check the address", c.base,
			response.Status)
	}
	if body.Error.ID != "" {
		return vedette.Errorf(vedette.Unavailable, "the server failed (%s): see its log for id %s", body.Error.Message, body.Error.ID)
	}
	return vedette.Errorf(vedette.ErrorKind(body.Error.Kind), "%s", body.Error.Message)
}
