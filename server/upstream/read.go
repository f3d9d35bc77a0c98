package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/internal/notfound"
	"github.com/vedette-io/vedette/server/upstream/merging"
)

// part is the upstream Clouddriver's part of an answer, while it arrives.
type part struct {
	document io.Reader // nil if it has nothing, or if there is a reason
	reason   string    // why the part is missing; empty if it is there, or if there is nothing (404)
	// rejection is set if the status says what is wrong with the request or the caller.
	rejection *rejection
	age       time.Duration // of a last answer; 0 for the current one
	isLast    bool          // that the part is not the current one
	// isUnsupported is set if Clouddriver itself says that it does not have the path, the method or the feature.
	isUnsupported bool
	body          io.Closer
}

// close releases the connection. The zero value needs no close.
func (p *part) close() {
	if p.body != nil {
		_ = p.body.Close() // the answer has been read, or is not wanted
	}
}

// open asks the upstream Clouddriver what a caller asks, and returns its answer as soon as it begins.
func (c *client) open(ctx context.Context, caller http.Header, path *url.URL) part {
	response, err := c.get(ctx, caller, path) //nolint:bodyclose // by part.close
	if err != nil {
		return part{reason: reasonOf(err)}
	}
	p := part{body: response.Body, age: ageOf(response)}
	p.isLast = p.age > 0
	switch code := response.StatusCode; {
	case code != http.StatusOK:
		p.reason = reasonOfResponse(response)
		if isRejection(code) || code == http.StatusNotImplemented {
			said := readRejection(response)
			p.isUnsupported = said.isUnsupported()
			if isRejection(code) {
				p.rejection = said
			}
		}
	case response.Header.Get(incompleteHeader) != "":
		p.reason = reasonIncomplete
	default:
		p.document = response.Body
	}
	return p
}

// rejection is an answer with a status that says what is wrong with the request or the caller.
type rejection struct {
	status      int
	contentType string
	body        []byte
}

// maxRejectionBytes bounds the words of a rejection.
const maxRejectionBytes = 64 << 10

func readRejection(response *http.Response) *rejection {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxRejectionBytes)) // some words are better than none
	return &rejection{response.StatusCode, response.Header.Get("Content-Type"), body}
}

// isMissing reports whether the 404 is Clouddriver's own. A gateway in front of it, or another server at its address, also answers
// 404, with another body.
func (f *rejection) isMissing() bool {
	return f.status == http.StatusNotFound && notfound.Spring(f.body)
}

// isUnsupported reports whether Clouddriver's own words are that it does not have what was asked for, as those of a Clouddriver without
// the predecessor's plugin, with an older one, or with one whose dynamic accounts are switched off.
func (f *rejection) isUnsupported() bool {
	switch f.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return notfound.SpringStatus(f.body, f.status)
	}
	return false
}

// send passes on a rejection in its words.
func (f *rejection) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", f.contentType)
	w.WriteHeader(f.status)
	_, _ = w.Write(f.body) // the client may have disconnected
}

// isRejection reports whether a status says what is wrong with the request or the caller, and not with the upstream
// Clouddriver, with what is in front of it, or with the credentials that this server sends.
func isRejection(code int) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}

// maxAge bounds the age that an answer may claim.
const maxClaimedAge = 365 * 24 * time.Hour

// ageOf returns the age of an answer of which a part is not the current one, because the upstream is a vedette-server that
// has an upstream too.
func ageOf(r *http.Response) time.Duration {
	seconds, err := strconv.ParseUint(r.Header.Get(ageHeader), 10, 63)
	if err != nil {
		return 0
	}
	return time.Duration(min(seconds, uint64(maxClaimedAge/time.Second))) * time.Second
}

// get sends a GET request for a caller.
func (c *client) get(ctx context.Context, caller http.Header, path *url.URL) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.BaseURL, nil)
	if err != nil {
		return nil, err
	}
	request.URL = c.url(path, path.RawQuery)
	request.Header = readHeader(caller)
	request.Header.Set("Accept", "application/json")
	c.complete(ctx, request.Header)
	return c.transport.RoundTrip(request)
}

// reasonError is the reason why a part of an answer is missing, which has been counted.
type reasonError string

func (e reasonError) Error() string { return string(e) }

// reasonOfError returns the reason why a part that began could not be read, and counts it.
func (c *client) reasonOfError(ctx context.Context, err error) string {
	if counted, ok := errors.AsType[reasonError](err); ok {
		return string(counted)
	}
	var body *bodyError
	reason := reasonInvalid
	switch {
	case errors.Is(err, fair.ErrTooLarge), errors.Is(err, merging.ErrManyElements):
		reason = reasonTooLarge
	case errors.Is(err, errPaused):
		reason = reasonTimeout
	case errors.As(err, &body):
		if reason = reasonCutOff; ctx.Err() != nil {
			reason = reasonTimeout
		}
	case ctx.Err() != nil: // while it waited for memory
		reason = reasonBusy
	}
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		c.stats.reject(reason, err)
	}
	return reason
}
