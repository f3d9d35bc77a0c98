package request

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette/agent/kube"
)

// Stream opens a subresource whose response may never end, for example a log. The caller closes it. It is not retried.
func (s *Sender) Stream(ctx context.Context, p Path, subresource string, query url.Values) (io.ReadCloser, error) {
	resp, err := s.logged(ctx, s.cluster.Stream, kube.Request{Path: p.urlPath() + subresource, Query: query, Accept: "*/*"})
	if err != nil {
		return nil, err
	}
	s.Warnings.addHeader(resp.Header)
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, s.readStatusError(ctx, resp)
	}
	return resp.Body, nil
}
