package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// freshness tells how far a response may be behind the clusters, for each feed that it depends
// on.
type freshness struct {
	Stale bool            `json:"stale"` // whether any feed is stale
	Feeds []feedFreshness `json:"freshness"`
}

type feedFreshness struct {
	Account   vedette.AccountName `json:"account"`
	Kind      string              `json:"kind"`
	Namespace string              `json:"namespace,omitempty"` // if the account's agent watches by namespace
	State     vedette.FeedState   `json:"state"`
	Message   string              `json:"message,omitempty"`
	Watermark timestamp           `json:"watermark"` // time up to which the feed is complete; null if unknown
	LagMs     *int64              `json:"lagMs"`     // milliseconds since the watermark; null if there is none
	Stale     bool                `json:"stale"`
}

// feedAbsent is the state of a requested kind that the account does not cache.
const feedAbsent vedette.FeedState = "absent"

// feedFreshness returns the freshness of a feed. The agent's last report counts while the
// agent is connected. If it is not, or if the feed is not live, the store may be behind
// without bound.
func (a *api) feedFreshness(f store.FeedStatus, now time.Time) feedFreshness {
	seen, connected := a.Fleet.Freshness(f.Account)
	live := connected && f.State == vedette.FeedLive
	watermark := f.LastSeen
	if live && seen.After(watermark) {
		watermark = seen
	}
	if watermark.After(now) {
		watermark = now // stored while this server's clock was ahead
	}
	out := feedFreshness{Account: f.Account, Kind: f.Feed.Kind.String(), Namespace: f.Feed.Namespace, State: f.State, Message: f.Message,
		Watermark: timestamp(watermark), Stale: !live || now.Sub(seen) > a.StaleAfter}
	if !connected && out.Message == "" {
		out.Message = "no agent is connected for this account"
	}
	if !watermark.IsZero() {
		lag := max(0, now.Sub(watermark).Milliseconds())
		out.LagMs = &lag
	}
	return out
}

// freshnessOf returns the freshness of the feeds of some accounts and, unless kinds is empty,
// some kinds. If accounts were named, kinds that they do not cache are included, because the
// response will never contain their objects.
func (a *api) freshnessOf(i *inventory, f filter, now time.Time) freshness {
	out := freshness{Feeds: []feedFreshness{}}
	for _, account := range f.accounts {
		for _, feed := range i.feedsByAccount[account] {
			if len(f.kinds) == 0 || slices.Contains(f.kinds, feed.Feed.Kind) {
				if f.Namespace == "" || feed.Feed.Namespace == "" || feed.Feed.Namespace == f.Namespace {
					out.Feeds = append(out.Feeds, a.feedFreshness(feed, now))
				}
			}
		}
		if len(f.accountPatterns) > 0 {
			out.Feeds = append(out.Feeds, i.absentFeeds(account, f.kinds)...)
		}
	}
	out.Stale = slices.ContainsFunc(out.Feeds, func(f feedFreshness) bool { return f.Stale })
	return out
}

func (i *inventory) absentFeeds(account vedette.AccountName, kinds []vedette.Kind) []feedFreshness {
	var out []feedFreshness
	for _, kind := range kinds {
		if !slices.ContainsFunc(i.feedsByAccount[account], func(f store.FeedStatus) bool { return f.Feed.Kind == kind }) {
			out = append(out, feedFreshness{Account: account, Kind: kind.String(), State: feedAbsent,
				Message: "the account's agent does not cache this kind"})
		}
	}
	return out
}

// withoutWatermarks returns a copy without the values that change all the time.
func (f freshness) withoutWatermarks() freshness {
	f.Feeds = slices.Clone(f.Feeds)
	for i := range f.Feeds {
		f.Feeds[i].Watermark, f.Feeds[i].LagMs = timestamp{}, nil
	}
	return f
}

// watermark returns the watermark that all feeds have reached, or zero if a feed has none.
func (f freshness) watermark() time.Time {
	var oldest time.Time
	for _, feed := range f.Feeds {
		watermark := time.Time(feed.Watermark)
		if feed.State == feedAbsent {
			continue
		}
		if watermark.IsZero() {
			return watermark
		}
		if oldest.IsZero() || watermark.Before(oldest) {
			oldest = watermark
		}
	}
	return oldest
}

func (f freshness) setHeaders(h http.Header) {
	h.Set("Vedette-Stale", map[bool]string{true: "true", false: "false"}[f.Stale])
	if oldest := f.watermark(); !oldest.IsZero() {
		h.Set("Vedette-Watermark", oldest.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	}
}
