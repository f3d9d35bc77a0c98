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
	accept := typeJSON
	if p.secret() {
		accept = metadataOnlyList
	}
	var items []json.RawMessage
	err := o.pages(ctx, p, call{query: query, accept: accept}, func(page []json.RawMessage, first bool) error {
		if first {
			items = nil
		}
		items = append(items, page...)
		return nil
	})
	return items, err
}

// pages hands over the objects of a place page by page. It begins again, with
// first, after the API server forgot the list half-way.
func (o *Operator) pages(ctx context.Context, p place, c call, take func(page []json.RawMessage, first bool) error) error {
	for first := true; ; {
		page, next, err := o.page(ctx, p, c)
		if statusOf(err) == http.StatusGone && c.query.Has("continue") {
			c.query.Del("continue")
			first = true
			continue
		}
		if err != nil {
			return err
		}
		if err := take(page, first); err != nil || next == "" {
			return err
		}
		c.query.Set("continue", next)
		first = false
	}
}

func (o *Operator) page(ctx context.Context, p place, c call) (items []json.RawMessage, next string, err error) {
	raw, _, err := o.do(ctx, p, c)
	if err != nil {
		return nil, "", err
	}
	if c.wiped {
		defer clear(raw)
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
