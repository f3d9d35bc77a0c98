package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
	"github.com/vedette-io/vedette/server/api/parameters"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/read"
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
	values, err := parameters.Parse(r, "account", "kind", "limit", "cursor")
	if err != nil {
		return err
	}
	f, err := parseFilter(values)
	if err != nil {
		return err
	}
	limit, after, err := parameters.Paging(values, 4)
	if err != nil {
		return err
	}
	f.onlyReported = true // the list is open to everyone, and clusters are asked only for those who may read their accounts
	i, err := a.resolve(r, &f)
	if err != nil {
		return err
	}
	accounts, total := i.Accounts, int64(i.CountFeeds(f.kinds, f.Namespace))
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
	return rest.WriteJSON(w, r, list)
}

// countFeeds returns the number of feeds of accounts that the filter selects.
func (f *filter) countFeeds(accounts []*accountfeeds.Account) (n int64) {
	for _, account := range accounts {
		n += int64(f.countSelected(account.Feeds))
	}
	return n
}

func (f *filter) countSelected(feeds []read.FeedStatus) (n int) {
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

func (p feedPosition) compare(f read.FeedStatus) int {
	return cmp.Or(cmp.Compare(p.account, f.Account), cmp.Compare(p.kind.Name, f.Feed.Kind.Name), cmp.Compare(p.kind.Group, f.Feed.Kind.Group),
		cmp.Compare(p.namespace, f.Feed.Namespace))
}

type feedPage struct {
	api    *api
	filter filter
	limit  int
	after  feedPosition // the last feed of the previous page; zero on the first
	items  []feedView
}

// read reads the feeds of as many accounts as the page needs, by the feeds that the list
// knows. It returns the cursor of the next page.
func (p *feedPage) read(ctx context.Context, accounts []*accountfeeds.Account) (items []feedView, cursor string, err error) {
	p.items = []feedView{}
	at, _ := accountfeeds.Search(accounts, p.after.account)
	for accounts = accounts[at:]; len(accounts) > 0 && len(p.items) <= p.limit; {
		names, after := p.accountsToRead(accounts)
		if err := p.readAccounts(ctx, names); err != nil {
			return nil, "", err
		}
		accounts = after
	}
	if len(p.items) > p.limit {
		p.items = p.items[:p.limit]
		cursor = p.items[p.limit-1].cursor
	}
	return p.items, cursor, nil
}

// accountsToRead returns the next accounts that have feeds of the page: enough for the rest of it,
// but not more than one query reads. It also returns the accounts after them.
func (p *feedPage) accountsToRead(accounts []*accountfeeds.Account) (names []vedette.AccountName, after []*accountfeeds.Account) {
	feeds := 0
	for n, account := range accounts {
		if len(names) == accountfeeds.AccountsPerRead || feeds > p.limit-len(p.items) {
			return names, accounts[n:]
		}
		if count := p.filter.countSelected(account.Feeds); count > 0 {
			names, feeds = append(names, account.Name), feeds+count
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

func (a *api) feedView(f read.FeedStatus, now time.Time) feedView {
	return feedView{feedFreshness: a.feedFreshness(f, a.agentState(f.Account), now), Objects: f.Objects, Synced: timestamp(f.Synced),
		Verified: timestamp(f.Verified), DriftObjects: f.Drift,
		Mark: string(f.Mark), APIVersion: f.Resource.APIVersion(),
		cursor: parameters.NewCursor(string(f.Account), f.Feed.Kind.Name, f.Feed.Kind.Group, f.Feed.Namespace)}
}
