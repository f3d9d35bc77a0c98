package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// answer is what the upstream Clouddriver answers for a merge.
type answer struct {
	body   []byte // nil without status 200; it may be there although the reason is reasonIncomplete
	reason string // why the answer is missing or incomplete; empty if it is complete, or if there is nothing (404)
	// isRefusal is set if the status says what is wrong with the request or the caller.
	isRefusal bool
	memory    *allowance
}

func (a answer) release() {
	if a.memory != nil {
		a.memory.release()
	}
}

// failure returns an answer that is missing.
func failure(reason string) answer { return answer{reason: reason} }

// read asks the upstream Clouddriver what a caller asks. It takes at most MergeTimeout.
func (c *client) read(ctx context.Context, r *http.Request, memory *allowance) answer {
	ctx, cancel := context.WithTimeout(ctx, c.MergeTimeout)
	defer cancel()
	response, err := c.get(ctx, r.Header, r.URL)
	if err != nil {
		return failure(reasonOf(err))
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return answer{}
	default:
		return answer{reason: reasonOfResponse(response), isRefusal: response.StatusCode < http.StatusInternalServerError}
	}
	a := answer{memory: memory}
	a.body, err = readLimited(response.Body, a.memory)
	if err != nil {
		a.release()
		return failure(c.rejectBody(ctx, err))
	}
	if response.Header.Get(incompleteHeader) != "" {
		a.reason = reasonIncomplete
	}
	return a
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

var errTooLarge = errors.New("the answer is larger than the memory for merged answers")

// readLimited reads a body as long as there is memory.
func readLimited(body io.Reader, memory *allowance) ([]byte, error) {
	var b bytes.Buffer
	chunk := make([]byte, 32<<10)
	for {
		n, err := body.Read(chunk)
		if n > 0 && !memory.take(n) {
			return nil, errTooLarge
		}
		b.Write(chunk[:n])
		switch {
		case errors.Is(err, io.EOF):
			return append([]byte{}, b.Bytes()...), nil
		case err != nil:
			return nil, fmt.Errorf("read the answer: %w", err)
		}
	}
}

// rejectBody counts an answer that could not be read, and returns the reason.
func (c *client) rejectBody(ctx context.Context, err error) string {
	reason := reasonCutOff
	switch {
	case errors.Is(err, errTooLarge):
		reason = reasonTooLarge
	case ctx.Err() != nil || errors.Is(err, errPaused):
		reason = reasonTimeout
	}
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		c.stats.reject(reason, err)
	}
	return reason
}
