package upstream

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// maxProbeBytes bounds the list of accounts that Probe reads. Thousands of accounts take a few MB.
const maxProbeBytes = 64 << 20

// Probe asks the upstream Clouddriver once for its accounts, and returns their number.
func Probe(ctx context.Context, cfg Config) (accounts int, err error) {
	c, err := newClient(cfg)
	if err != nil {
		return 0, err
	}
	response, err := c.get(ctx, http.Header{}, &url.URL{Path: "/credentials"})
	if err != nil {
		return 0, vedette.Errorf(vedette.Unavailable, "%w: check upstream.baseUrl and upstream.ssl, and that the Clouddriver runs", err)
	}
	defer response.Body.Close()
	if missing := response.Header.Get(incompleteHeader); missing != "" {
		return 0, vedette.Errorf(vedette.Invalid, "it leads to a vedette-server, whose own upstream does not answer (%s): "+
			"set upstream.baseUrl to the address of the Clouddriver that was there before", missing)
	}
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return 0, vedette.Errorf(vedette.Denied, "it answers %s: check upstream.username, upstream.password and upstream.headers", response.Status)
	default:
		return 0, vedette.Errorf(vedette.Unavailable, "it answers %s to GET /credentials: check upstream.baseUrl", response.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxProbeBytes))
	if err != nil {
		return 0, vedette.Errorf(vedette.Unavailable, "read its answer to GET /credentials: %w", err)
	}
	var list []json.RawMessage
	if err := exactjson.Unmarshal(raw, &list, exactjson.Limits{}); err != nil {
		return 0, vedette.Errorf(vedette.Invalid, "its answer to GET /credentials is not a list of accounts: check upstream.baseUrl: %w", err)
	}
	return len(list), nil
}
