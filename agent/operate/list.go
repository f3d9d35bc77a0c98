package operate

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/vedette-io/vedette"
)

// pageLimit is how many objects a list asks for at a time.
const pageLimit = 500

// list reads all objects of a kind, page by page.
func (o *Operator) list(ctx context.Context, a vedette.ListArgs) result {
	p, err := o.findAll(ctx, a.Target)
	if err != nil {
		return failed(err)
	}
	items, err := o.all(ctx, p.list(), a.LabelSelector, a.FieldSelector)
	if err != nil {
		return failed(err)
	}
	return o.toldAll(p, items)
}

// all reads the objects of a place page by page. A list that the API server
// forgot half-way begins again.
func (o *Operator) all(ctx context.Context, p place, labels, fields string) ([]json.RawMessage, error) {
	query := url.Values{"limit": {strconv.Itoa(pageLimit)}}
	if labels != "" {
		query.Set("labelSelector", labels)
	}
	if fields != "" {
		query.Set("fieldSelector", fields)
	}
	var items []json.RawMessage
	for {
		page, next, err := o.page(ctx, p, query)
		if statusOf(err) == http.StatusGone && query.Has("continue") {
			items = nil
			query.Del("continue")
			continue
		}
		items = append(items, page...)
		if err != nil || next == "" {
			return items, err
		}
		query.Set("continue", next)
	}
}

func (o *Operator) page(ctx context.Context, p place, query url.Values) (items []json.RawMessage, next string, err error) {
	accept := typeJSON
	if p.secret() {
		accept = metadataOnlyList
	}
	raw, _, err := o.do(ctx, p, call{query: query, accept: accept})
	if err != nil {
		return nil, "", err
	}
	var list struct {
		Metadata struct{ Continue string }
		Items    []json.RawMessage
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, "", vedette.Errorf(vedette.Unavailable, "the cluster's list of %s makes no sense: %w", p.Kind, err)
	}
	return list.Items, list.Metadata.Continue, nil
}
