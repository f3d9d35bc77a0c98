package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// feedView is a feed: one kind of one account, and its state.
type feedView struct {
	feedFreshness
	Objects    int64     `json:"objects"`
	Synced     timestamp `json:"synced"` // end of the last snapshot; null before the first
	Mark       string    `json:"mark"`   // resourceVersion up to which the feed is stored
	APIVersion string    `json:"apiVersion"`
}

func (a *api) listFeeds(w http.ResponseWriter, r *http.Request) error {
	values, err := parseParameters(r, "account", "kind")
	if err != nil {
		return err
	}
	f, err := parseFilter(values)
	if err != nil {
		return err
	}
	i, err := a.resolve(r.Context(), &f)
	if err != nil {
		return err
	}
	items, now := []feedView{}, time.Now()
	for _, feed := range i.feeds {
		if (len(f.kinds) == 0 || slices.Contains(f.kinds, feed.Feed.Kind)) && (len(f.accountPatterns) == 0 ||
			matchAny(f.accountPatterns, feed.Account)) {
			items = append(items, feedView{feedFreshness: a.feedFreshness(feed, now), Objects: feed.Objects, Synced: timestamp(feed.Synced),
				Mark: string(feed.Mark), APIVersion: feed.Resource.APIVersion()})
		}
	}
	return writeJSON(w, r, listView[feedView]{Items: items, Total: int64(len(items))})
}

// kindView is a kind that at least one account reports.
type kindView struct {
	Kind       string                `json:"kind"`
	Group      string                `json:"group,omitempty"`
	Versions   []string              `json:"versions"` // versions differ between clusters
	Plural     string                `json:"plural"`
	Singular   string                `json:"singular,omitempty"`
	ShortNames []string              `json:"shortNames"`
	Namespaced bool                  `json:"namespaced"`
	Accounts   []vedette.AccountName `json:"accounts"`
	Objects    int64                 `json:"objects"`
}

func (a *api) listKinds(w http.ResponseWriter, r *http.Request) error {
	values, err := parseParameters(r, "account")
	if err != nil {
		return err
	}
	f, err := parseFilter(values)
	if err != nil {
		return err
	}
	i, err := a.resolve(r.Context(), &f)
	if err != nil {
		return err
	}
	items := i.kindViews(f)
	return writeJSON(w, r, listView[kindView]{Items: items, Total: int64(len(items))})
}

func (i *inventory) kindViews(f filter) []kindView {
	items, index := []kindView{}, map[vedette.Kind]int{}
	for _, feed := range i.feeds {
		if len(f.accountPatterns) > 0 && !matchAny(f.accountPatterns, feed.Account) {
			continue
		}
		kind, res := feed.Feed.Kind, feed.Resource
		n, ok := index[kind]
		if !ok {
			n, index[kind] = len(items), len(items)
			items = append(items, kindView{Kind: kind.String(), Group: kind.Group, Plural: res.Plural, Singular: res.Singular,
				ShortNames: append([]string{}, res.ShortNames...), Namespaced: res.Namespaced})
		}
		v := &items[n]
		v.Objects += feed.Objects
		if !slices.Contains(v.Versions, res.Version) {
			v.Versions = append(v.Versions, res.Version)
		}
		if l := len(v.Accounts); l == 0 || v.Accounts[l-1] != feed.Account { // feeds are sorted by account
			v.Accounts = append(v.Accounts, feed.Account)
		}
	}
	slices.SortFunc(items, func(x, y kindView) int { return compareStrings(x.Kind, y.Kind) })
	return items
}
