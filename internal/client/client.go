// Package client speaks to a Vedette server's API, /vedette/v1, for the command
// line.
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

// Client speaks to one server.
type Client struct {
	// User is on whose behalf it speaks, as Spinnaker knows them; empty for nobody.
	// Not to be changed while it speaks.
	User string
	// UserAccounts are those that User may change, joined by commas. A server without
	// Fiat believes it, as it believes Gate. Not to be changed while it speaks.
	UserAccounts string

	base          string
	http          *http.Client
	httpNoTimeout *http.Client // for what may take long before it is answered
}

// DefaultServer is where a server listens that runs on this machine.
const DefaultServer = "http://localhost:7002"

// New returns a client of the server at an address, "http://localhost:7002".
// The scheme may be left out and means http then.
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
	return &Client{base: strings.TrimRight(u.String(), "/"), http: &http.Client{Transport: transport}, httpNoTimeout: &http.Client{Transport: transportNoTimeout}}, nil
}

// Server returns the address of the server.
func (c *Client) Server() string { return c.base }

// get reads a document into v.
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

// do returns an answer that is no error. Whoever gets it closes its body.
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

// connectionFailed says where the client tried, and what can be done.
func (c *Client) connectionFailed(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // the URL is named anyway
	}
	const advice = "start a server with `vedette up`, or name another with --server or VEDETTE_SERVER"
	if isConnectionRefused(err) {
		return vedette.Errorf(vedette.Unavailable, "nothing listens at %s (%w): %s", c.base, err, advice)
	}
	return vedette.Errorf(vedette.Unavailable, "the server at %s cannot be reached: %w: %s", c.base, err, advice)
}

func isConnectionRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// responseError makes an error of an answer. One that is not in our form comes from
// something else than a Vedette server, such as a proxy before it.
func (c *Client) responseError(response *http.Response) error {
	var body struct {
		Error struct{ Kind, Message, ID string }
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // what could be read is judged below
	if json.Unmarshal(text, &body) != nil || body.Error.Message == "" {
		return vedette.Errorf(vedette.Unavailable, "%s answered %q, which is not the response of a Vedette server: check the address", c.base, response.Status)
	}
	if body.Error.ID != "" {
		return vedette.Errorf(vedette.Unavailable, "the server failed (%s): see its log for id %s", body.Error.Message, body.Error.ID)
	}
	return vedette.Errorf(vedette.ErrorKind(body.Error.Kind), "%s", body.Error.Message)
}
