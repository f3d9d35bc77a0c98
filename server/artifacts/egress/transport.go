package egress

import (
	"context"
	"net/http"
)

// maxGETBytes bounds what a library holds in memory.
const maxGETBytes = 32 << 20

// RoundTrip makes one request for a library that builds its own, under the policy and the limits
// of answers. Answers to GET are smaller: in the protocol of Git, which this is for, they are the
// list of branches and tags, and content is the answer to POST.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, end := context.WithCancelCause(r.Context())
	response, err := c.transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end(nil)
		return nil, err
	}
	limit := c.limits.MaxBytes
	if r.Method == http.MethodGet {
		limit = min(limit, maxGETBytes)
	}
	response.Body = newBody(ctx, end, response.Body, limit, c.limits.StallTimeout)
	return response, nil
}
