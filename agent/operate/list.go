package operate

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/vedette-io/vedette"
)

// pageLimit is the number of objects in a page of a list.
const pageLimit = 500

// list returns all objects of a kind that match the selectors.
func (r *run) list(ctx context.Context, a vedette.ListArgs) result {
	p, err := r.resolveTarget(ctx, a.Target)
	if err != nil {
		return errorResult(err)
	}
	items, err := r.listAll(ctx, p.collection(), a.LabelSelector, a.FieldSelector)
	if err != nil {
		return errorResult(err)
	}
	return r.listResult(p, items)
}

// listAll returns the objects of a collection that match the selectors.
func (r *run) listAll(ctx context.Context, p resourcePath, labels, fields string) ([]json.RawMessage, error) {
	query := url.Values{"limit": {strconv.Itoa(pageLimit)}}
	if labels != "" {
		query.Set("labelSelector", labels)
	}
	if fields != "" {
		query.Set("fieldSelector", fields)
	}
	accept := contentTypeJSON
	if p.isSecret() {
		accept = acceptMetadataList
	}
	var items []json.RawMessage
	err := r.forEachPage(ctx, p, request{query: query, accept: accept}, func(page []json.RawMessage, first bool) error {
		if first {
			items = nil
		}
		items = append(items, page...)
		return nil
	})
	return items, err
}

// forEachPage calls handle with the pages of a collection. If the continue token expires, it begins
// again with the first page.
func (r *run) forEachPage(ctx context.Context, p resourcePath, req request, handle func(page []json.RawMessage, first bool) error) error {
	for first := true; ; {
		page, next, err := r.fetchPage(ctx, p, req)
		if statusCode(err) == http.StatusGone && req.query.Has("continue") {
			req.query.Del("continue")
			first = true
			continue
		}
		if err != nil {
			return err
		}
		if err := handle(page, first); err != nil || next == "" {
			return err
		}
		req.query.Set("continue", next)
		first = false
	}
}

func (r *run) fetchPage(ctx context.Context, p resourcePath, req request) (items []json.RawMessage, next string, err error) {
	raw, _, err := r.do(ctx, p, req)
	if err != nil {
		return nil, "", err
	}
	if req.sensitive {
		defer clear(raw)
	}
	var list struct {
		Metadata struct{ Continue string }
		Items    []json.RawMessage
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, "", vedette.Errorf(vedette.Unavailable, "the cluster's list of %s is invalid: %w", p.Kind, err)
	}
	return list.Items, list.Metadata.Continue, nil
}
