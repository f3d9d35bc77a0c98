package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Limits bound what one request costs. All of them must be set.
type Limits struct {
	MaxBytes       int64         // size of an answer
	Timeout        time.Duration // time of a request with its whole answer
	StallTimeout   time.Duration // time without any byte of the answer
	ConnectTimeout time.Duration // time to connect, and for the TLS handshake
}

// Client requests URLs under a policy.
type Client struct {
	policy    Policy
	limits    Limits
	transport *http.Transport
}

// New returns a client.
func New(policy Policy, limits Limits) *Client {
	c := &Client{policy: policy, limits: limits}
	c.transport = &http.Transport{
		DialContext:         c.Dial,
		TLSHandshakeTimeout: limits.ConnectTimeout, ResponseHeaderTimeout: limits.StallTimeout,
		MaxResponseHeaderBytes: 256 << 10, MaxIdleConnsPerHost: 2, MaxIdleConns: 32, IdleConnTimeout: time.Minute,
		ForceAttemptHTTP2: true,
		// Some repositories label the compression of an archive as that of the transfer. A
		// transport that decompresses would turn a chart into another file.
		DisableCompression: true,
	}
	return c
}

// Limits returns the limits in effect.
func (c *Client) Limits() Limits { return c.limits }

// Dial connects to an address if the policy allows it.
func (c *Client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: c.limits.ConnectTimeout, Control: c.policy.Control}
	return dialer.DialContext(ctx, network, address) //nolint:wrapcheck // it is wrapped with the host where the answer is read
}

// Request is what to get, and how.
type Request struct {
	URL *url.URL
	// Header is sent to the host of URL and to no other host.
	Header http.Header
	// Check rejects URLs, including those of redirects. Nil allows all.
	Check func(*url.URL) error
	// Sign adds a signature to the request, which then follows no redirects, because a signature
	// is valid for one URL only. Nil means none.
	Sign func(*http.Request) error
	// MaxBytes replaces the limit of the client if it is smaller; 0 means that of the client.
	MaxBytes int64
}

// StatusError means that a server answered, and not with success.
type StatusError struct {
	Host   string
	Status int
	// Body is the beginning of the body of a 404, from which it shows whether the server itself sent it.
	Body []byte
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s answered with status %d", e.Host, e.Status)
	if e.Status == http.StatusNotFound {
		text += ": what the URL names does not exist there, or the credentials do not allow to see it, or the host is the wrong one"
	}
	return text
}

// Get requests a URL and returns the body of the answer. Reading fails if a limit is exceeded. The
// caller closes the body. Errors name the host only: paths and queries may contain tokens.
func (c *Client) Get(ctx context.Context, r Request) (io.ReadCloser, error) {
	if err := checkURL(r); err != nil {
		return nil, err
	}
	ctx, end := c.deadline(ctx)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL.String(), http.NoBody)
	if err != nil {
		end(nil)
		return nil, fmt.Errorf("the URL at %s is not valid", r.URL.Host)
	}
	request.Header.Set("User-Agent", "vedette-server")
	maps.Copy(request.Header, r.Header)
	if r.Sign != nil {
		if err := r.Sign(request); err != nil {
			end(nil)
			return nil, err
		}
	}
	client := http.Client{Transport: c.transport, CheckRedirect: redirectRule(r)}
	response, err := client.Do(request)
	if err != nil {
		defer end(nil)
		return nil, describe(ctx, r.URL, err)
	}
	return c.acceptResponse(ctx, end, r, response)
}

// acceptResponse returns the body of a successful answer, and closes every other one.
func (c *Client) acceptResponse(ctx context.Context, end context.CancelCauseFunc, r Request,
	response *http.Response) (io.ReadCloser, error) {
	limit := c.limits.MaxBytes
	if r.MaxBytes > 0 {
		limit = min(limit, r.MaxBytes)
	}
	var err error
	switch {
	case response.StatusCode < 200 || response.StatusCode > 299:
		status := &StatusError{Host: response.Request.URL.Host, Status: response.StatusCode}
		if status.Status == http.StatusNotFound {
			status.Body = c.readStart(ctx, end, response.Body)
		}
		err = status
	case response.ContentLength > limit:
		err = &SizeError{limit}
	default:
		return newBody(ctx, end, response.Body, limit, c.limits.StallTimeout), nil
	}
	response.Body.Close()
	end(nil)
	return nil, err
}

// maxStartBytes is more than a server sends with a 404.
const maxStartBytes = 64 << 10

// readStart returns the beginning of a body. One that breaks off says nothing, so that the error is ignored.
func (c *Client) readStart(ctx context.Context, end context.CancelCauseFunc, body io.ReadCloser) []byte {
	text, _ := io.ReadAll(newBody(ctx, end, body, maxStartBytes, c.limits.StallTimeout))
	return text
}

// deadline returns a context that ends with the time limit of a request.
func (c *Client) deadline(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, stop := context.WithTimeoutCause(ctx, c.limits.Timeout, &TimeError{"the answer is not complete", c.limits.Timeout})
	ctx, end := context.WithCancelCause(ctx)
	return ctx, func(cause error) { end(cause); stop() }
}

func checkURL(r Request) error {
	switch scheme := strings.ToLower(r.URL.Scheme); {
	case scheme != "http" && scheme != "https":
		return fmt.Errorf("URLs must start with http:// or https://, got %q", scheme)
	case r.URL.Hostname() == "":
		return errors.New("the URL has no host")
	case r.Check != nil:
		return r.Check(r.URL)
	}
	return nil
}

// describe returns an error without the URL, but with what happened.
func describe(ctx context.Context, u *url.URL, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return fmt.Errorf("request to %s: %w", u.Host, cause)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return fmt.Errorf("request to %s: %w", u.Host, err)
}
