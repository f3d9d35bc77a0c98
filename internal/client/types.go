package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
)

// Query selects objects. Empty fields select all.
type Query struct {
	Account     string // a name, a glob, or several separated by commas
	Kind        string
	Namespace   string
	Name        string
	Application string
	Selector    string
	Limit       int
	Cursor      string
	Table       bool
	Manifests   bool
	Include     string // more of each item, for lists other than objects
	Labels      bool   // of the rows of a table
}

func (q Query) values() url.Values {
	v := nonEmpty(map[string]string{"account": q.Account, "kind": q.Kind, "namespace": q.Namespace, "name": q.Name,
		"application": q.Application, "selector": q.Selector, "cursor": q.Cursor})
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Table {
		v.Set("as", "table")
	}
	switch {
	case q.Manifests:
		v.Set("include", "body")
	case q.Include != "":
		v.Set("include", q.Include)
	case q.Labels:
		v.Set("include", "labels")
	}
	return v
}

func nonEmpty(parameters map[string]string) url.Values {
	v := url.Values{}
	for name, value := range parameters {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// FeedFreshness is how far a feed may be behind its cluster.
type FeedFreshness struct {
	Account, Kind, Namespace string
	State, Message           string
	Watermark                *time.Time
	LagMs                    *int64
	Stale                    bool
}

// Freshness is how far a response may be behind the clusters.
type Freshness struct {
	Stale     bool
	Watermark *time.Time
	FeedCount int             `json:"feeds"`     // number of feeds that the response depends on
	Feeds     []FeedFreshness `json:"freshness"` // stale and absent feeds, if they are few
	Unlisted  int             // number of further stale and absent feeds
}

// IsCached reports whether any account caches the kinds of the response. Servers of earlier
// versions list all feeds and do not count them.
func (f Freshness) IsCached() bool {
	return f.FeedCount > 0 || slices.ContainsFunc(f.Feeds, func(f FeedFreshness) bool { return f.State != "absent" })
}

// Columns are the header of a table.
type Columns struct {
	Kind       string
	Namespaced bool
	Columns    []Column
}

// Column is one column of a table.
type Column struct {
	Name string
	Wide bool
}

// Row is one object in a table.
type Row struct {
	Account, Namespace, Name string
	UID, ResourceVersion     string
	Cells                    []string
	Labels                   map[string]string // if Query.Labels is set
	Manifest                 json.RawMessage   // if Query.Manifests is set
}

// Table is a page of objects of one kind as a table.
type Table struct {
	Columns `json:",inline"`
	Freshness
	Rows   []Row
	Total  int64
	Cursor string
}

// Object is an object, with its manifest if Query.Manifests is set.
type Object struct {
	Account, Kind, Namespace, Name string
	ResourceVersion                string
	Manifest                       json.RawMessage
}

// Objects is a page of objects.
type Objects struct {
	Freshness
	Items  []Object
	Total  int64
	Cursor string
}

// Account is an account as GET accounts returns it.
type Account struct {
	Name    string
	Status  string // empty from servers of earlier versions
	Cluster Cluster
	Agent   string
	Server  string
	Objects int64
	// Verified is when the feed that was verified longest ago was; nil if one was never.
	Verified     *time.Time
	DriftObjects int64
	Feeds        map[string]int
	LagMs        *int64
	Stale        bool
	Message      string
	Access       []string    // READ and WRITE, from AccountsWithAccess
	Conditions   []Condition // empty from servers of earlier versions
}

// Agent is a connected agent.
type Agent struct {
	ID, Version, Hostname, Server string
	ZoneID                        string
	Connected, LastPulse          time.Time
	Message                       string // what is wrong with the agent itself
	Accounts                      []struct{ Name, Role, Message string }
	Conditions                    []Condition
}

// Condition says whether something holds for an agent or an account.
type Condition struct {
	Type, Status, Reason, Message string
	Since                         time.Time // when the configuration of the agent took effect
}

// Feed is a feed of an account and its progress.
type Feed struct {
	FeedFreshness
	Objects int64
	Synced  *time.Time
	// Verified is when the feed was last found to equal its cluster.
	Verified     *time.Time
	DriftObjects int64
}

type list[T any] struct {
	Items  []T
	Cursor string
}

// pageSize is the number of accounts or feeds per request.
const pageSize = 1000

// Item is an item of a list, decoded and as the server sent it, which may have more fields.
type Item[T any] struct {
	Value T
	Raw   json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *Item[T]) UnmarshalJSON(data []byte) error {
	i.Raw = bytes.Clone(data)
	return json.Unmarshal(data, &i.Value)
}

func valuesOf[T any](items []Item[T], err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	values := make([]T, len(items))
	for i := range items {
		values[i] = items[i].Value
	}
	return values, nil
}

func readAll[T any](ctx context.Context, c *Client, path string, q Query) ([]Item[T], error) {
	var items []Item[T]
	q.Limit = pageSize
	for {
		var page list[Item[T]]
		if err := c.get(ctx, path, q.values(), &page); err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
		switch page.Cursor {
		case "":
			return items, nil
		case q.Cursor:
			return nil, c.repeatedPage(path)
		}
		q.Cursor = page.Cursor
	}
}

// repeatedPage is the error if an answer has the cursor of the request: reading on would not end.
func (c *Client) repeatedPage(path string) error {
	return vedette.Errorf(vedette.Unavailable, "%s answered the same page of %s again: check whether a proxy caches its answers", c.base, path)
}

// Table returns a page of objects as a table.
func (c *Client) Table(ctx context.Context, q Query) (Table, error) {
	q.Table = true
	var t Table
	err := c.get(ctx, "/objects", q.values(), &t)
	if err == nil && t.Cursor != "" && t.Cursor == q.Cursor {
		return t, c.repeatedPage("/objects")
	}
	return t, err
}

// Objects returns a page of objects.
func (c *Client) Objects(ctx context.Context, q Query) (Objects, error) {
	var o Objects
	err := c.get(ctx, "/objects", q.values(), &o)
	if err == nil && o.Cursor != "" && o.Cursor == q.Cursor {
		return o, c.repeatedPage("/objects")
	}
	return o, err
}

// AccountItems returns the accounts that match a pattern; all for an empty pattern.
func (c *Client) AccountItems(ctx context.Context, pattern string) ([]Item[Account], error) {
	return readAll[Account](ctx, c, "/accounts", Query{Account: pattern})
}

// Accounts is AccountItems, decoded.
func (c *Client) Accounts(ctx context.Context, pattern string) ([]Account, error) {
	return valuesOf(c.AccountItems(ctx, pattern))
}

// AccountsWithAccess is Accounts with what the caller may do with each. Servers of earlier releases reject it.
func (c *Client) AccountsWithAccess(ctx context.Context, pattern string) ([]Account, error) {
	return valuesOf(readAll[Account](ctx, c, "/accounts", Query{Account: pattern, Include: "access"}))
}

// AgentItems returns the agents that serve an account that matches a pattern.
func (c *Client) AgentItems(ctx context.Context, pattern string) ([]Item[Agent], error) {
	return readAll[Agent](ctx, c, "/agents", Query{Account: pattern})
}

// FeedItems returns the feeds of the accounts that match a pattern.
func (c *Client) FeedItems(ctx context.Context, pattern, kind string) ([]Item[Feed], error) {
	return readAll[Feed](ctx, c, "/feeds", Query{Account: pattern, Kind: kind})
}

// Feeds is FeedItems, decoded.
func (c *Client) Feeds(ctx context.Context, pattern, kind string) ([]Feed, error) {
	return valuesOf(c.FeedItems(ctx, pattern, kind))
}

// Version returns the server's version.
func (c *Client) Version(ctx context.Context) (string, error) {
	var v struct{ Version string }
	err := c.get(ctx, "/version", nil, &v)
	return v.Version, err
}
