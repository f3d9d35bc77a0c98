package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// freshness says of each feed that an answer is made of how far behind its
// cluster it may be.
type freshness struct {
	Stale bool        `json:"stale"` // any of the feeds is
	Feeds []feedFresh `json:"freshness"`
}

type feedFresh struct {
	Account   vedette.AccountName `json:"account"`
	Kind      string              `json:"kind"`
	Namespace string              `json:"namespace,omitempty"` // where the account's agent watches by namespace
	State     vedette.FeedState   `json:"state"`
	Message   string              `json:"message,omitempty"`
	Watermark moment              `json:"watermark"` // up to when it is complete; null where that is not known
	LagMs     *int64              `json:"lagMs"`     // since the watermark; null where that is null
	Stale     bool                `json:"stale"`
}

// absent is the state of a kind that was asked for of an account that does not
// cache it.
const absent vedette.FeedState = "absent"

// fresh looks at a feed. What its agent said last counts as long as the agent
// is there; once it is gone, or says that the feed is anything but live, the
// store may be behind without bound.
func (a *api) fresh(f store.FeedStatus, now time.Time) feedFresh {
	seen, connected := a.Fleet.Freshness(f.Account)
	live := connected && f.State == vedette.FeedLive
	mark := f.LastSeen
	if live && seen.After(mark) {
		mark = seen
	}
	if mark.After(now) {
		mark = now // it was stored while this server's clock was ahead
	}
	out := feedFresh{Account: f.Account, Kind: f.Feed.Kind.String(), Namespace: f.Feed.Namespace, State: f.State, Message: f.Message,
		Watermark: moment(mark), Stale: !live || now.Sub(seen) > a.StaleAfter}
	if !connected && out.Message == "" {
		out.Message = "no agent is connected for this account"
	}
	if !mark.IsZero() {
		lag := max(0, now.Sub(mark).Milliseconds())
		out.LagMs = &lag
	}
	return out
}

// freshOf looks at the feeds of some accounts and, unless kinds is empty, of
// some kinds. Where accounts were named, a kind that one of them does not cache
// is told too: its objects are missing from the answer for good.
func (a *api) freshOf(i *inventory, f filter, now time.Time) freshness {
	out := freshness{Feeds: []feedFresh{}}
	for _, account := range f.accounts {
		for _, feed := range i.byName[account] {
			if len(f.kinds) == 0 || slices.Contains(f.kinds, feed.Feed.Kind) {
				if f.Namespace == "" || feed.Feed.Namespace == "" || feed.Feed.Namespace == f.Namespace {
					out.Feeds = append(out.Feeds, a.fresh(feed, now))
				}
			}
		}
		if len(f.patterns) > 0 {
			out.Feeds = append(out.Feeds, i.absent(account, f.kinds)...)
		}
	}
	out.Stale = slices.ContainsFunc(out.Feeds, func(f feedFresh) bool { return f.Stale })
	return out
}

func (i *inventory) absent(account vedette.AccountName, kinds []vedette.Kind) []feedFresh {
	var out []feedFresh
	for _, kind := range kinds {
		if !slices.ContainsFunc(i.byName[account], func(f store.FeedStatus) bool { return f.Feed.Kind == kind }) {
			out = append(out, feedFresh{Account: account, Kind: kind.String(), State: absent, Message: "the account's agent does not cache this kind"})
		}
	}
	return out
}

// still returns the freshness without what moves while nothing happens.
func (f freshness) still() freshness {
	f.Feeds = slices.Clone(f.Feeds)
	for i := range f.Feeds {
		f.Feeds[i].Watermark, f.Feeds[i].LagMs = moment{}, nil
	}
	return f
}

// oldest returns the watermark that all feeds have reached, zero where one of
// them has none.
func (f freshness) oldest() time.Time {
	var oldest time.Time
	for _, feed := range f.Feeds {
		mark := time.Time(feed.Watermark)
		if feed.State == absent {
			continue
		}
		if mark.IsZero() {
			return mark
		}
		if oldest.IsZero() || mark.Before(oldest) {
			oldest = mark
		}
	}
	return oldest
}

func (f freshness) header(h http.Header) {
	h.Set("Vedette-Stale", map[bool]string{true: "true", false: "false"}[f.Stale])
	if oldest := f.oldest(); !oldest.IsZero() {
		h.Set("Vedette-Watermark", oldest.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	}
}
