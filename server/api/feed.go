package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// feedView is a feed: one kind of one account, and its state.
type feedView struct {
	feedFreshness
	Objects int64     `json:"objects"`
	Synced  timestamp `json:"synced"` // end of the last snapshot; null before the first
	// Verified is when the feed was last found to equal its cluster; null before the first time.
	Verified timestamp `json:"verified"`
	// DriftObjects is how many objects were found to differ from the cluster, and were read anew, all together.
	DriftObjects int64  `json:"driftObjects"`
	Mark         string `json:"mark"` // resourceVersion up to which the feed is stored
	APIVersion   string `json:"apiVersion"`
	cursor       string // of the page after this feed
}

func (a *api) listFeeds(w http.ResponseWriter, r *http.Request) error {
	values, err := parseParameters(r, "account", "kind", "limit", "cursor")
	if err != nil {
		return err
	}
	f, err := parseFilter(values)
	if err != nil {
		return err
	}
	limit, after, err := parsePaging(values, 4)
	if err != nil {
		return err
	}
	i, err := a.resolve(r.Context(), &f)
	if err != nil {
		return err
	}
	accounts, total := i.accounts, int64(i.countFeeds(f))
	if f.isRestricted() {
		accounts, total = f.accounts, f.countFeeds(f.accounts)
	}
	page := feedPage{api: a, filter: f, limit: limit}
	if after != nil {
		page.after = feedPosition{vedette.AccountName(after[0]), vedette.Kind{Name: after[1], Group: after[2]}, after[3]}
	}
	list := listView[feedView]{Total: total}
	list.Items, list.Cursor, err = page.read(r.Context(), accounts)
	if err != nil {
		return err
	}
	return writeJSON(w, r, list)
}

// countFeeds returns the number of feeds of accounts that the filter selects.
func (f *filter) countFeeds(accounts []*accountEntry) (n int64) {
	for _, account := range accounts {
		n += int64(account.countFeeds(f))
	}
	return n
}

func (e *accountEntry) countFeeds(f *filter) int { return f.countSelected(e.feeds) }

func (e *accountEntry) countNotLive(f *filter) int { return f.countSelected(e.notLive) }

func (f *filter) countSelected(feeds []store.FeedStatus) (n int) {
	if len(f.kinds) == 0 && f.Namespace == "" {
		return len(feeds)
	}
	for i := range feeds {
		if f.selectsFeed(feeds[i].Feed) {
			n++
		}
	}
	return n
}

// feedPosition is the place of a feed in the order of all feeds.
type feedPosition struct {
	account   vedette.AccountName
	kind      vedette.Kind
	namespace string
}

func (p feedPosition) compare(f store.FeedStatus) int {
	return cmp.Or(cmp.Compare(p.account, f.Account), cmp.Compare(p.kind.Name, f.Feed.Kind.Name), cmp.Compare(p.kind.Group, f.Feed.Kind.Group),
		cmp.Compare(p.namespace, f.Feed.Namespace))
}

// feedPage reads one page of feeds.
type feedPage struct {
	api    *api
	filter filter
	limit  int
	after  feedPosition // the last feed of the previous page; zero on the first
	items  []feedView
}

// read reads the feeds of as many accounts as the page needs, by the feeds that the inventory
// knows. It returns the cursor of the next page.
func (p *feedPage) read(ctx context.Context, accounts []*accountEntry) (items []feedView, cursor string, err error) {
	p.items = []feedView{}
	at, _ := searchAccounts(accounts, p.after.account)
	for accounts = accounts[at:]; len(accounts) > 0 && len(p.items) <= p.limit; {
		names, rest := p.accountsToRead(accounts)
		if err := p.readAccounts(ctx, names); err != nil {
			return nil, "", err
		}
		accounts = rest
	}
	if len(p.items) > p.limit {
		p.items = p.items[:p.limit]
		cursor = p.items[p.limit-1].cursor
	}
	return p.items, cursor, nil
}

// accountsToRead returns the next accounts that have feeds of the page: enough for the rest of it,
// but not more than one query reads. It also returns the accounts after them.
func (p *feedPage) accountsToRead(accounts []*accountEntry) (names []vedette.AccountName, rest []*accountEntry) {
	feeds := 0
	for n, account := range accounts {
		if len(names) == accountsPerRead || feeds > p.limit-len(p.items) {
			return names, accounts[n:]
		}
		if count := account.countFeeds(&p.filter); count > 0 {
			names, feeds = append(names, account.name), feeds+count
		}
	}
	return names, nil
}

func (p *feedPage) readAccounts(ctx context.Context, names []vedette.AccountName) error {
	if len(names) == 0 { // the store would return all feeds
		return nil
	}
	feeds, err := p.api.Store.Feeds(ctx, names...)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, feed := range feeds {
		if p.filter.selectsFeed(feed.Feed) && p.after.compare(feed) < 0 {
			p.items = append(p.items, p.api.feedView(feed, now))
		}
	}
	return nil
}

func (a *api) feedView(f store.FeedStatus, now time.Time) feedView {
	return feedView{feedFreshness: a.feedFreshness(f, a.agentState(f.Account), now), Objects: f.Objects, Synced: timestamp(f.Synced),
		Verified: timestamp(f.Verified), DriftObjects: f.Drift,
		Mark: string(f.Mark), APIVersion: f.Resource.APIVersion(),
		cursor: newCursor(string(f.Account), f.Feed.Kind.Name, f.Feed.Kind.Group, f.Feed.Namespace)}
}
