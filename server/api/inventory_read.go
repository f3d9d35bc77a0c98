package api

import (
	"context"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// readInventory reads all accounts.
func readInventory(ctx context.Context, s accountStore) (*inventory, error) {
	i := &inventory{readAt: time.Now(), kinds: map[vedette.Kind]*kindEntry{}}
	i.checkedAt = i.readAt
	_, i.position = s.ChangedAccounts(0) // before the read, so that no change is missed
	rows, err := s.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	feeds, err := s.Feeds(ctx)
	if err != nil {
		return nil, err
	}
	i.accounts = newEntries(rows, feeds)
	for _, account := range i.accounts {
		i.count(account, 1)
	}
	i.summarize()
	i.readTook = time.Since(i.readAt)
	return i, nil
}

// readAccounts returns those of the named accounts that exist.
func readAccounts(ctx context.Context, s accountStore, names []vedette.AccountName) ([]*accountEntry, error) {
	var entries []*accountEntry
	for chunk := range slices.Chunk(names, accountsPerRead) {
		rows, err := s.AccountsNamed(ctx, chunk...)
		if err != nil {
			return nil, err
		}
		feeds, err := s.Feeds(ctx, chunk...)
		if err != nil {
			return nil, err
		}
		entries = append(entries, newEntries(rows, feeds)...)
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

// compact drops what the inventory does not need of feeds, and shares the rest.
func compact(feeds []store.FeedStatus) {
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

func newEntries(rows []store.AccountRow, feeds []store.FeedStatus) []*accountEntry {
	compact(feeds)
	byAccount := groupFeeds(feeds)
	entries := make([]*accountEntry, len(rows))
	for n, row := range rows {
		entries[n] = newEntry(row.Name, byAccount[row.Name])
	}
	return entries
}

func newEntry(name vedette.AccountName, feeds []store.FeedStatus) *accountEntry {
	e := &accountEntry{name: name, feeds: feeds}
	for _, f := range feeds {
		if f.State != vedette.FeedLive {
			e.notLive = append(e.notLive, f)
		}
	}
	return e
}

// groupFeeds returns the feeds of each account. The feeds must be sorted by account.
func groupFeeds(feeds []store.FeedStatus) map[vedette.AccountName][]store.FeedStatus {
	groups := map[vedette.AccountName][]store.FeedStatus{}
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
