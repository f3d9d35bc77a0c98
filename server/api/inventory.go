package api

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/nearest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/views"
)

// inventory is the state at one time. It is immutable.
type inventory struct {
	checkedAt time.Time       // when the last look for changes began
	position  uint64          // in the store's log of changes, at that time
	readAt    time.Time       // when the last read of all accounts began
	readTook  time.Duration   // how long that took
	accounts  []*accountEntry // sorted by name
	kinds     map[vedette.Kind]*kindEntry
	resources []vedette.Resource // of all accounts, each kind once, sorted
	attention []*accountEntry    // accounts with feeds that are not live
}

// kindEntry is a kind that at least one account reports.
type kindEntry struct {
	resource vedette.Resource // as one of the accounts serves it
	total    int              // number of feeds
	feeds    map[string]int   // number of feeds by namespace; "" is all namespaces
}

func cloneKinds(kinds map[vedette.Kind]*kindEntry) map[vedette.Kind]*kindEntry {
	clone := make(map[vedette.Kind]*kindEntry, len(kinds))
	for kind, entry := range kinds {
		clone[kind] = &kindEntry{entry.resource, entry.total, maps.Clone(entry.feeds)}
	}
	return clone
}

// accountEntry is an account with its feeds. It is immutable.
type accountEntry struct {
	name    vedette.AccountName
	feeds   []store.FeedStatus // sorted by kind and namespace
	notLive []store.FeedStatus
}

// replace replaces the named accounts by those that exist of them. It changes no map or slice in
// place, because earlier inventories share them.
func (i *inventory) replace(names []vedette.AccountName, entries []*accountEntry) {
	gone := make(map[vedette.AccountName]bool, len(names))
	for _, name := range names {
		gone[name] = true
	}
	i.kinds = cloneKinds(i.kinds)
	kept := make([]*accountEntry, 0, len(i.accounts)+len(entries))
	for _, account := range i.accounts {
		if gone[account.name] {
			i.count(account, -1)
			continue
		}
		kept = append(kept, account)
	}
	for _, account := range entries {
		i.count(account, 1)
	}
	i.accounts = append(kept, entries...)
	slices.SortFunc(i.accounts, func(a, b *accountEntry) int { return cmp.Compare(a.name, b.name) })
	i.summarize()
}

// count adds n to the numbers of an account's feeds.
func (i *inventory) count(account *accountEntry, n int) {
	for _, f := range account.feeds {
		kind := i.kinds[f.Feed.Kind]
		if kind == nil {
			kind = &kindEntry{resource: f.Resource, feeds: map[string]int{}}
			i.kinds[f.Feed.Kind] = kind
		}
		kind.total += n
		kind.feeds[f.Feed.Namespace] += n
		if kind.feeds[f.Feed.Namespace] == 0 {
			delete(kind.feeds, f.Feed.Namespace)
		}
		if kind.total == 0 {
			delete(i.kinds, f.Feed.Kind)
		}
	}
}

// summarize sets what follows from the accounts and kinds.
func (i *inventory) summarize() {
	i.attention, i.resources = nil, nil
	for _, account := range i.accounts {
		if len(account.notLive) > 0 {
			i.attention = append(i.attention, account)
		}
	}
	for _, kind := range i.kinds {
		i.resources = append(i.resources, kind.resource)
	}
	slices.SortFunc(i.resources, func(a, b vedette.Resource) int {
		return cmp.Or(cmp.Compare(a.Kind.Name, b.Kind.Name), cmp.Compare(a.Kind.Group, b.Kind.Group))
	})
}

// account returns an account, or nil.
func (i *inventory) account(name vedette.AccountName) *accountEntry {
	at, ok := searchAccounts(i.accounts, name)
	if !ok {
		return nil
	}
	return i.accounts[at]
}

// searchAccounts returns the position of an account, or where it would be.
func searchAccounts(accounts []*accountEntry, name vedette.AccountName) (at int, found bool) {
	return slices.BinarySearchFunc(accounts, name, func(a *accountEntry, name vedette.AccountName) int { return cmp.Compare(a.name, name) })
}

// matchAccounts returns the accounts that match any of the patterns. It fails if a pattern without
// wildcards matches nothing.
func (i *inventory) matchAccounts(patterns accountPatterns) ([]*accountEntry, error) {
	var matched []*accountEntry
	for _, p := range patterns.texts {
		account := i.account(vedette.AccountName(p))
		switch {
		case hasWildcards(p):
		case account == nil:
			return nil, i.accountNotFound(p)
		default:
			matched = append(matched, account)
		}
	}
	if len(patterns.globs) == 0 {
		slices.SortFunc(matched, func(a, b *accountEntry) int { return cmp.Compare(a.name, b.name) })
		return slices.Compact(matched), nil
	}
	matched = nil
	for _, account := range i.accounts {
		if patterns.match(account.name) {
			matched = append(matched, account)
		}
	}
	return matched, nil
}

// selectAccounts is matchAccounts, or all accounts if there are no patterns.
func (i *inventory) selectAccounts(patterns accountPatterns) ([]*accountEntry, error) {
	if patterns.selectAll() {
		return i.accounts, nil
	}
	return i.matchAccounts(patterns)
}

// maxHintAccounts is the number of names that an unknown name is compared with. More would let
// requests for unknown accounts cost milliseconds.
const maxHintAccounts = 1000

func (i *inventory) accountNotFound(name string) error {
	var names []string
	if len(i.accounts) <= maxHintAccounts {
		for _, a := range i.accounts {
			names = append(names, string(a.name))
		}
	}
	return vedette.Errorf(vedette.NotFound, "there is no account %.255q%s", name, nearest.Hint(name, names))
}

// resourcesOf returns the resources of some accounts, each kind once.
func resourcesOf(accounts []*accountEntry) []vedette.Resource {
	seen := map[vedette.Kind]bool{}
	var out []vedette.Resource
	for _, a := range accounts {
		for _, f := range a.feeds {
			if !seen[f.Feed.Kind] {
				seen[f.Feed.Kind] = true
				out = append(out, f.Resource)
			}
		}
	}
	return out
}

// findResources resolves kinds as users write them.
func findResources(served []vedette.Resource, names []string) ([]vedette.Resource, error) {
	var out []vedette.Resource
	for _, name := range names {
		r, err := views.FindResource(served, name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(out, func(o vedette.Resource) bool { return o.Kind == r.Kind }) {
			out = append(out, r)
		}
	}
	return out, nil
}
