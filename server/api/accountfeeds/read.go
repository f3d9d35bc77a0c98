package accountfeeds

import (
	"context"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
)

func readAll(ctx context.Context, s Store) (*List, error) {
	i := &List{readAt: time.Now(), Kinds: map[vedette.Kind]*Kind{}}
	i.checkedAt = i.readAt
	i.position = s.ChangedAccounts(0).Mark // before the read, so that no change is missed
	rows, err := s.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	feeds, err := s.Feeds(ctx)
	if err != nil {
		return nil, err
	}
	i.Accounts = newAccounts(rows, feeds)
	for _, account := range i.Accounts {
		i.count(account, 1)
	}
	i.summarize()
	i.readTook = time.Since(i.readAt)
	return i, nil
}

// readAccounts returns those of the named accounts that exist.
func readAccounts(ctx context.Context, s Store, names []vedette.AccountName) ([]*Account, error) {
	var entries []*Account
	for chunk := range slices.Chunk(names, AccountsPerRead) {
		rows, err := s.AccountsNamed(ctx, chunk...)
		if err != nil {
			return nil, err
		}
		feeds, err := s.Feeds(ctx, chunk...)
		if err != nil {
			return nil, err
		}
		entries = append(entries, newAccounts(rows, feeds)...)
	}
	return entries, nil
}

// interner makes equal resources share their memory: a fleet has a hundred thousand feeds of some
// twenty kinds.
type interner map[resourceKey]vedette.Resource

type resourceKey struct {
	kind                      vedette.Kind
	version, plural, singular string
	namespaced                bool
}

func (n interner) intern(r vedette.Resource) vedette.Resource {
	key := resourceKey{r.Kind, r.Version, r.Plural, r.Singular, r.Namespaced}
	known, ok := n[key]
	if !ok || !slices.Equal(known.ShortNames, r.ShortNames) {
		n[key] = r
		return r
	}
	return known
}

// compact drops what the list does not need of feeds, and shares the rest.
func compact(feeds []read.FeedStatus) {
	resources := interner{}
	for n := range feeds {
		f := &feeds[n]
		f.Resource = resources.intern(f.Resource)
		f.Feed.Kind, f.Mark = f.Resource.Kind, ""
		if n > 0 && f.Account == feeds[n-1].Account {
			f.Account = feeds[n-1].Account
		}
		if f.State == vedette.FeedLive {
			f.State = vedette.FeedLive // the constant
		}
	}
}

func newAccounts(rows []registry.Account, feeds []read.FeedStatus) []*Account {
	compact(feeds)
	byAccount := GroupFeeds(feeds)
	entries := make([]*Account, len(rows))
	for n, row := range rows {
		entries[n] = newAccount(row, byAccount[row.Name])
	}
	return entries
}

func newAccount(row registry.Account, feeds []read.FeedStatus) *Account {
	e := &Account{Name: row.Name, Cluster: row.Cluster, Feeds: feeds, onlyManaged: row.Properties.OnlySpinnakerManaged,
		omitNamespaces: row.Properties.OmitNamespaces}
	for _, f := range feeds {
		if f.State != vedette.FeedLive {
			e.NotLive = append(e.NotLive, f)
		}
	}
	return e
}

// GroupFeeds returns the feeds of each account. The feeds must be sorted by account.
func GroupFeeds(feeds []read.FeedStatus) map[vedette.AccountName][]read.FeedStatus {
	groups := map[vedette.AccountName][]read.FeedStatus{}
	for start := 0; start < len(feeds); {
		end := start
		for end < len(feeds) && feeds[end].Account == feeds[start].Account {
			end++
		}
		groups[feeds[start].Account] = feeds[start:end:end]
		start = end
	}
	return groups
}
