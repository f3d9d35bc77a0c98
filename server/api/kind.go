package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
	"github.com/vedette-io/vedette/server/api/parameters"
	"github.com/vedette-io/vedette/server/rest"
)

// kindView is a kind that at least one account reports.
type kindView struct {
	Kind       string                `json:"kind"`
	Group      string                `json:"group,omitempty"`
	Versions   []string              `json:"versions"` // versions differ between clusters
	Plural     string                `json:"plural"`
	Singular   string                `json:"singular,omitempty"`
	ShortNames []string              `json:"shortNames"`
	Namespaced bool                  `json:"namespaced"`
	Accounts   []vedette.AccountName `json:"accounts"` // at most maxKindAccounts, by name
	// AccountCount is the number of all accounts that report the kind.
	AccountCount int   `json:"accountCount"`
	Objects      int64 `json:"objects"`
}

// maxKindAccounts bounds the answer: most kinds are in all accounts.
const maxKindAccounts = 100

func (a *api) listKinds(w http.ResponseWriter, r *http.Request) error {
	values, err := parameters.Parse(r, "account")
	if err != nil {
		return err
	}
	f, err := parseFilter(values)
	if err != nil {
		return err
	}
	i, err := a.resolve(r, &f)
	if err != nil {
		return err
	}
	items, err := a.readKinds(r.Context(), i, f)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, listView[kindView]{Items: items, Total: int64(len(items))})
}

// readKinds returns the kinds of the accounts that a filter selects.
func (a *api) readKinds(ctx context.Context, i *accountfeeds.List, f filter) ([]kindView, error) {
	switch {
	case f.matchesNothing():
		return []kindView{}, nil
	case f.isRestricted():
		counts, err := a.Store.ObjectCounts(ctx, namesOf(f.accounts)...)
		return kindViews(f.accounts, counts), err
	case len(i.Accounts) <= maxExactAccounts:
		counts, err := a.Store.ObjectCounts(ctx)
		return kindViews(i.Accounts, counts), err
	}
	isCurrent := func(l *kindList) bool { return time.Now().Before(l.until) }
	list, err := a.kindLists.Get(ctx, isCurrent, func(ctx context.Context, _ *kindList) (*kindList, error) {
		start := time.Now()
		counts, err := a.Store.ObjectCounts(ctx)
		if err != nil {
			return nil, err
		}
		views := kindViews(i.Accounts, counts)
		return &kindList{views, start.Add(kindReuse * time.Since(start))}, nil
	})
	if err != nil {
		return nil, err
	}
	return list.views, nil
}

// kindList is the kinds of a large fleet, which are kept for kindReuse times as long as it took to count their
// objects.
type kindList struct {
	views []kindView
	until time.Time
}

const kindReuse = 50

func kindViews(accounts []*accountfeeds.Account, objects map[vedette.Kind]int64) []kindView {
	byKind := map[vedette.Kind]*kindView{}
	for _, account := range accounts {
		for n, feed := range account.Feeds {
			kind, res := feed.Feed.Kind, feed.Resource
			v := byKind[kind]
			if v == nil {
				v = &kindView{Kind: kind.String(), Group: kind.Group, Plural: res.Plural, Singular: res.Singular,
					ShortNames: append([]string{}, res.ShortNames...), Namespaced: res.Namespaced, Objects: objects[kind]}
				byKind[kind] = v
			}
			if !slices.Contains(v.Versions, res.Version) {
				v.Versions = append(v.Versions, res.Version)
			}
			if n == 0 || account.Feeds[n-1].Feed.Kind != kind { // feeds are sorted by kind
				v.addAccount(account.Name)
			}
		}
	}
	items := make([]kindView, 0, len(byKind))
	for _, v := range byKind {
		items = append(items, *v)
	}
	slices.SortFunc(items, func(x, y kindView) int { return cmp.Compare(x.Kind, y.Kind) })
	return items
}

func (v *kindView) addAccount(name vedette.AccountName) {
	v.AccountCount++
	if len(v.Accounts) < maxKindAccounts {
		v.Accounts = append(v.Accounts, name)
	}
}
