package secret

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette"
)

// NewHTTPClient returns a client that follows no redirects, because requests carry credentials. It
// has no timeout: contexts limit requests.
func NewHTTPClient(transport *http.Transport) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Do sends a request and returns the body of a successful answer. Errors name the host and the
// status, never the body, which may quote a secret.
func Do(client *http.Client, r *http.Request) ([]byte, error) {
	response, err := client.Do(r)
	if err != nil {
		return nil, Unreachable(r.Context(), r.URL.Host, err)
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, vedette.Errorf(KindOfStatus(response.StatusCode), "%s answered with status %s", r.URL.Host, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxDocumentBytes+1))
	if err != nil {
		return nil, Unreachable(r.Context(), r.URL.Host, err)
	}
	if len(body) > MaxDocumentBytes {
		return nil, vedette.Errorf(vedette.Invalid, "%s answered with more than %d MiB", r.URL.Host, MaxDocumentBytes>>20)
	}
	return body, nil
}

// Unreachable is the error for a request without an answer. It says which host did not answer, and
// leaves out the URL.
func Unreachable(ctx context.Context, host string, err error) error {
	var urlError *url.Error
	if errors.As(err, &urlError) {
		err = urlError.Err
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return vedette.Errorf(vedette.Unavailable, "%s did not answer: %w", host, err)
}

// KindOfStatus returns the kind of the error for the status of an HTTP answer.
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
