package secret

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/notfound"
)

// NewHTTPClient returns a client that follows no redirects, because requests carry credentials. It
// has no timeout: contexts limit requests.
func NewHTTPClient(transport *http.Transport) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Do sends a request and returns the body of a successful answer. Errors name the host and the
// status, never the body, which may quote a secret. The error is vedette.NotFound only if the body of a 404 is what the service
// sends for something that it does not have; after any other one, the request may be sent again.
func Do(client *http.Client, r *http.Request, isNotFound notfound.Rule) ([]byte, error) {
	response, err := client.Do(r)
	if err != nil {
		return nil, Unreachable(r.Context(), r.URL.Host, err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound && !isNotFound(notfound.Read(response.Body)) {
		return nil, vedette.Errorf(vedette.Unavailable, "%s answered with status %s, %s", r.URL.Host, response.Status, notfound.Hint)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, vedette.Errorf(KindOfStatus(response.StatusCode), "%s answered with status %s", r.URL.Host, response.Status)
	}
	body, err := io.ReadAll(&limitedBody{ReadCloser: response.Body, left: MaxDocumentBytes})
	if err != nil {
		return nil, Unreachable(r.Context(), r.URL.Host, err)
	}
	return body, nil
}

// LimitBodies returns a RoundTripper whose responses have bodies of MaxDocumentBytes at most. Vendors'
// libraries read bodies as a whole, however large they are.
func LimitBodies(next http.RoundTripper) http.RoundTripper { return limitingTransport{next} }

type limitingTransport struct{ next http.RoundTripper }

func (t limitingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil {
		response.Body = &limitedBody{ReadCloser: response.Body, left: MaxDocumentBytes}
	}
	return response, err
}

// limitedBody is a body whose end is an error if it is too large.
type limitedBody struct {
	io.ReadCloser
	left int
}

// errTooLarge is of kind Invalid, because the next answer would be as large.
var errTooLarge = vedette.Errorf(vedette.Invalid, "the answer has more than %d MiB", MaxDocumentBytes>>20)

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)]) // one byte more, to see whether there is one
	b.left -= n
	if b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// Unreachable is the error for a request without an answer, or with one that is too large. It says
// which host did not answer, and leaves out the URL.
func Unreachable(ctx context.Context, host string, err error) error {
	if errors.Is(err, errTooLarge) {
		return vedette.Errorf(vedette.Invalid, "%s: %w", host, errTooLarge)
	}
	if urlError, ok := errors.AsType[*url.Error](err); ok {
		err = urlError.Err
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return vedette.Errorf(vedette.Unavailable, "%s did not answer: %w", host, err)
}

// KindOfStatus returns the kind of the error for the status of an HTTP answer, if the service itself sent it.
func KindOfStatus(status int) vedette.ErrorKind {
	switch {
	case status == http.StatusNotFound:
		return vedette.NotFound
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return vedette.Denied
	case status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500:
		return vedette.Unavailable
	}
	return vedette.Invalid
}
