package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
	"github.com/vedette-io/vedette/server/store/read"
)

// freshness tells how far a response may be behind the clusters. It does not grow with the number
// of feeds that the response depends on.
// docs/decisions/0082 has the measurements.
type freshness struct {
	Stale     bool      `json:"stale"`     // whether any feed is stale
	Watermark timestamp `json:"watermark"` // time up to which all feeds are complete; null if unknown
	FeedCount int       `json:"feeds"`     // number of feeds that the response depends on
	// Feeds are those that are stale or absent, at most maxListedFeeds. Of feeds of one account
	// with the same state and message, only the first is listed.
	Feeds    []feedFreshness `json:"freshness"`
	Unlisted int             `json:"unlisted"` // number of stale and absent feeds that are not listed
}

// maxListedFeeds is enough to see what is wrong: /vedette/v1/feeds lists all of them.
const maxListedFeeds = 20

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

// agentState is what is known about the agent of an account.
type agentState struct {
	seen      time.Time // everything until then is stored, if the agent knew it; zero if unknown
	connected bool
	complete  time.Time // the same for feeds that are not live, if they have a mark; zero if unknown
}

func (a *api) agentState(account vedette.AccountName) agentState {
	seen, connected := a.Fleet.Freshness(account)
	return agentState{seen, connected, a.Fleet.Completeness(account)}
}

// isFresh reports whether the live feeds of the account are not stale.
func (a *api) isFresh(s agentState, now time.Time) bool {
	return s.connected && now.Sub(s.seen) <= a.StaleAfter
}

// feedFreshness returns the freshness of a feed. The agent's last report counts while the
// agent is connected. If it is not, or if the feed is not live, the store may be behind
// without bound.
func (a *api) feedFreshness(f read.FeedStatus, agent agentState, now time.Time) feedFreshness {
	live := agent.connected && f.State == vedette.FeedLive
	watermark := f.LastSeen
	if live && agent.seen.After(watermark) {
		watermark = agent.seen
	}
	if agent.connected && f.State == vedette.FeedFailing && f.Mark != "" && agent.complete.After(watermark) {
		watermark = agent.complete
	}
	if watermark.After(now) {
		watermark = now // stored while this server's clock was ahead
	}
	out := feedFreshness{Account: f.Account, Kind: f.Feed.Kind.String(), Namespace: f.Feed.Namespace, State: f.State, Message: f.Message,
		Watermark: timestamp(watermark), Stale: !live || !a.isFresh(agent, now)}
	if !agent.connected && out.Message == "" {
		out.Message = "no agent is connected for this account"
	}
	out.LagMs = lagOf(watermark, now)
	return out
}

// lagOf returns the milliseconds since a watermark, or nil if it is zero.
func lagOf(watermark, now time.Time) *int64 {
	if watermark.IsZero() {
		return nil
	}
	lag := max(0, now.Sub(watermark).Milliseconds())
	return &lag
}

// freshnessBuilder adds up the freshness of feeds.
type freshnessBuilder struct {
	out     freshness
	oldest  time.Time // the oldest watermark; zero if there is none
	unknown bool      // whether a feed has no watermark
	listed  map[string]bool
}

func newFreshnessBuilder() *freshnessBuilder {
	return &freshnessBuilder{out: freshness{Feeds: []feedFreshness{}}, listed: map[string]bool{}}
}

func (b *freshnessBuilder) add(f feedFreshness) {
	b.out.FeedCount++
	b.addWatermark(time.Time(f.Watermark))
	if f.Stale {
		b.out.Stale = true
		b.list(f, string(f.Account)+" "+string(f.State)+" "+f.Message)
	}
}

// addFresh adds feeds that are not stale.
func (b *freshnessBuilder) addFresh(feeds int, watermark time.Time) {
	b.out.FeedCount += feeds
	if feeds > 0 {
		b.addWatermark(watermark)
	}
}

func (b *freshnessBuilder) addWatermark(watermark time.Time) {
	switch {
	case watermark.IsZero():
		b.unknown = true
	case b.oldest.IsZero() || watermark.Before(b.oldest):
		b.oldest = watermark
	}
}

// list lists a feed, unless there are too many or one with the same reason is listed.
func (b *freshnessBuilder) list(f feedFreshness, reason string) {
	if len(b.out.Feeds) == maxListedFeeds || b.listed[reason] {
		b.out.Unlisted++
		return
	}
	b.listed[reason] = true
	b.out.Feeds = append(b.out.Feeds, f)
}

// addAbsent adds the kinds that an account does not cache. They are listed, because the response
// will never contain their objects.
func (b *freshnessBuilder) addAbsent(account *accountfeeds.Account, kinds []vedette.Kind) {
	for _, kind := range kinds {
		if !slices.ContainsFunc(account.Feeds, func(f read.FeedStatus) bool { return f.Feed.Kind == kind }) {
			b.list(feedFreshness{Account: account.Name, Kind: kind.String(), State: feedAbsent,
				Message: "the account's agent does not cache this kind"}, string(account.Name)+" absent "+kind.String())
		}
	}
}

func (b *freshnessBuilder) freshness() freshness {
	if !b.unknown {
		b.out.Watermark = timestamp(b.oldest)
	}
	return b.out
}

// freshnessOf returns the freshness of the feeds that a filter selects. If accounts were named,
// kinds that they do not cache are included.
func (a *api) freshnessOf(ctx context.Context, i *accountfeeds.List, f filter, now time.Time) (freshness, error) {
	if !f.isRestricted() {
		return a.fleetFreshness(ctx, i, f, now)
	}
	return a.accountFreshness(f.accounts, f, now), nil
}

// accountFreshness is freshnessOf for some accounts.
func (a *api) accountFreshness(accounts []*accountfeeds.Account, f filter, now time.Time) freshness {
	b := newFreshnessBuilder()
	for _, account := range accounts {
		agent := a.agentState(account.Name)
		feeds := account.Feeds
		if a.isFresh(agent, now) { // then the live feeds are, too
			feeds = account.NotLive
			b.addFresh(f.countSelected(account.Feeds)-f.countSelected(account.NotLive), agent.seen)
		}
		for _, feed := range feeds {
			if f.selectsFeed(feed.Feed) {
				b.add(a.feedFreshness(feed, agent, now))
			}
		}
		if !f.patterns.SelectAll() {
			b.addAbsent(account, f.kinds)
		}
	}
	return b.freshness()
}

// selectsFeed reports whether objects of a feed can match the filter.
func (f *filter) selectsFeed(feed vedette.Feed) bool {
	return (len(f.kinds) == 0 || slices.Contains(f.kinds, feed.Kind)) &&
		(f.Namespace == "" || feed.Namespace == "" || feed.Namespace == f.Namespace)
}

// withoutWatermarks returns a copy without the values that change all the time.
func (f freshness) withoutWatermarks() freshness {
	f.Watermark = timestamp{}
	f.Feeds = slices.Clone(f.Feeds)
	for i := range f.Feeds {
		f.Feeds[i].Watermark, f.Feeds[i].LagMs = timestamp{}, nil
	}
	return f
}

func (f freshness) setHeaders(h http.Header) {
	h.Set("Vedette-Stale", map[bool]string{true: "true", false: "false"}[f.Stale])
	if oldest := time.Time(f.Watermark); !oldest.IsZero() {
		h.Set("Vedette-Watermark", oldest.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	}
}
