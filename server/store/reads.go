package store

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/versions"
)

// Objects is read.Reader.Objects. The bytes are divided among the databases that are asked.
func (s *Store) Objects(ctx context.Context, q read.Query) (read.Page, error) {
	if s.shards == nil {
		return s.Reader.Objects(ctx, q)
	}
	shares, err := s.splitAccounts(ctx, q.Accounts)
	if err != nil {
		return read.Page{}, err
	}
	if len(shares) == 1 {
		page, err := shares[0].Objects(ctx, q)
		return page, inDatabase(shares[0].name, err)
	}
	if q.Bytes > 0 {
		q.Bytes = max(1, q.Bytes/int64(len(shares)))
	}
	pages, err := ask(ctx, shares, func(ctx context.Context, d share[vedette.AccountName]) (read.Page, error) {
		of := q
		of.Accounts = d.values
		return d.Objects(ctx, of)
	})
	if err != nil {
		return read.Page{}, err
	}
	return read.MergePages(q.PageLimit(), pages), nil
}

// Object is read.Reader.Object.
func (s *Store) Object(ctx context.Context, account vedette.AccountName, key vedette.Key) (read.Row, error) {
	d, err := s.toRead(ctx, account)
	if err != nil {
		return read.Row{}, err
	}
	return d.Object(ctx, account, key)
}

// attributes asks for rows, which share the budget of the context.
func attributes[V any](ctx context.Context, shares []share[V],
	of func(ctx context.Context, d share[V]) ([]read.AttributesRow, error)) ([]read.AttributesRow, error) {
	lists, err := ask(read.ShareRowBudget(ctx), shares, of)
	if err != nil || len(lists) == 1 {
		return firstOf(lists), err
	}
	return read.MergeAttributes(lists)
}

func firstOf[T any](lists [][]T) []T {
	if len(lists) == 0 {
		return nil
	}
	return lists[0]
}

// AttributesOf is read.Reader.AttributesOf.
func (s *Store) AttributesOf(ctx context.Context, objects []read.ObjectRef) ([]read.AttributesRow, error) {
	if s.shards == nil {
		return s.Reader.AttributesOf(ctx, objects)
	}
	shares, err := split(ctx, s, objects, func(o read.ObjectRef) vedette.AccountName { return o.Account })
	if err != nil {
		return nil, err
	}
	return attributes(ctx, shares, func(ctx context.Context, d share[read.ObjectRef]) ([]read.AttributesRow, error) {
		return d.AttributesOf(ctx, d.values)
	})
}

// NamespaceAttributes is read.Reader.NamespaceAttributes.
func (s *Store) NamespaceAttributes(ctx context.Context, namespaces []read.NamespaceRef, kind vedette.Kind) ([]read.AttributesRow, error) {
	if s.shards == nil {
		return s.Reader.NamespaceAttributes(ctx, namespaces, kind)
	}
	shares, err := split(ctx, s, namespaces, func(n read.NamespaceRef) vedette.AccountName { return n.Account })
	if err != nil {
		return nil, err
	}
	return attributes(ctx, shares, func(ctx context.Context, d share[read.NamespaceRef]) ([]read.AttributesRow, error) {
		return d.NamespaceAttributes(ctx, d.values, kind)
	})
}

// allAttributes asks all databases for rows.
func (s *Store) allAttributes(ctx context.Context,
	of func(ctx context.Context, r *read.Reader) ([]read.AttributesRow, error)) ([]read.AttributesRow, error) {
	if s.shards == nil {
		return of(ctx, s.Reader)
	}
	return attributes(ctx, sharesOf[struct{}](s.all()), func(ctx context.Context, d share[struct{}]) ([]read.AttributesRow, error) {
		return of(ctx, d.Reader)
	})
}

// ApplicationAttributes is read.Reader.ApplicationAttributes.
func (s *Store) ApplicationAttributes(ctx context.Context, application string, kinds []vedette.Kind) ([]read.AttributesRow, error) {
	return s.allAttributes(ctx, func(ctx context.Context, r *read.Reader) ([]read.AttributesRow, error) {
		return r.ApplicationAttributes(ctx, application, kinds)
	})
}

// OwnedAttributes is read.Reader.OwnedAttributes.
func (s *Store) OwnedAttributes(ctx context.Context, application string, owners, kinds []vedette.Kind) ([]read.AttributesRow, error) {
	return s.allAttributes(ctx, func(ctx context.Context, r *read.Reader) ([]read.AttributesRow, error) {
		return r.OwnedAttributes(ctx, application, owners, kinds)
	})
}

// NeighborAttributes is read.Reader.NeighborAttributes.
func (s *Store) NeighborAttributes(ctx context.Context, application string, of, kinds []vedette.Kind) ([]read.AttributesRow, error) {
	return s.allAttributes(ctx, func(ctx context.Context, r *read.Reader) ([]read.AttributesRow, error) {
		return r.NeighborAttributes(ctx, application, of, kinds)
	})
}

// AttributesOwnedBy is read.Reader.AttributesOwnedBy.
func (s *Store) AttributesOwnedBy(ctx context.Context, owners []read.OwnerRef, kinds []vedette.Kind) ([]read.AttributesRow, error) {
	if s.shards == nil {
		return s.Reader.AttributesOwnedBy(ctx, owners, kinds)
	}
	shares, err := split(ctx, s, owners, func(o read.OwnerRef) vedette.AccountName { return o.Account })
	if err != nil {
		return nil, err
	}
	return attributes(ctx, shares, func(ctx context.Context, d share[read.OwnerRef]) ([]read.AttributesRow, error) {
		return d.AttributesOwnedBy(ctx, d.values, kinds)
	})
}

// KindAttributes is read.Reader.KindAttributes.
func (s *Store) KindAttributes(ctx context.Context, q read.AttributesQuery) ([]read.AttributesRow, error) {
	if s.shards == nil {
		return s.Reader.KindAttributes(ctx, q)
	}
	shares, err := s.splitAccounts(ctx, q.Accounts)
	if err != nil {
		return nil, err
	}
	return attributes(ctx, shares, func(ctx context.Context, d share[vedette.AccountName]) ([]read.AttributesRow, error) {
		of := q
		of.Accounts = d.values
		return d.KindAttributes(ctx, of)
	})
}

// ofAccounts asks the databases of accounts, or all if none is given.
func ofAccounts[A any](ctx context.Context, s *Store, accounts []vedette.AccountName,
	of func(ctx context.Context, r *read.Reader, accounts []vedette.AccountName) (A, error)) ([]A, error) {
	if s.shards == nil {
		answer, err := of(ctx, s.Reader, accounts)
		return []A{answer}, err
	}
	shares, err := s.splitAccounts(ctx, accounts)
	if err != nil {
		return nil, err
	}
	return ask(ctx, shares, func(ctx context.Context, d share[vedette.AccountName]) (A, error) { return of(ctx, d.Reader, d.values) })
}

// Marks is read.Reader.Marks. An agent continues from them, so they are read as if they were written.
func (s *Store) Marks(ctx context.Context, account vedette.AccountName) ([]read.FeedStatus, error) {
	d, err := s.of(ctx, account)
	if err != nil {
		return nil, err
	}
	return d.Marks(ctx, account)
}

// Feeds is read.Reader.Feeds.
func (s *Store) Feeds(ctx context.Context, accounts ...vedette.AccountName) ([]read.FeedStatus, error) {
	lists, err := ofAccounts(ctx, s, accounts, func(ctx context.Context, r *read.Reader,
		accounts []vedette.AccountName) ([]read.FeedStatus, error) {
		return r.Feeds(ctx, accounts...)
	})
	if err != nil || len(lists) == 1 {
		return firstOf(lists), err
	}
	return read.MergeFeeds(lists), nil
}

// Resources is read.Reader.Resources.
func (s *Store) Resources(ctx context.Context, accounts ...vedette.AccountName) ([]vedette.Resource, error) {
	lists, err := ofAccounts(ctx, s, accounts, func(ctx context.Context, r *read.Reader,
		accounts []vedette.AccountName) ([]vedette.Resource, error) {
		return r.Resources(ctx, accounts...)
	})
	if err != nil || len(lists) == 1 {
		return firstOf(lists), err
	}
	return read.MergeResources(lists), nil
}

// Namespaces is read.Reader.Namespaces.
func (s *Store) Namespaces(ctx context.Context, accounts ...vedette.AccountName) (map[vedette.AccountName][]string, error) {
	return joinMaps(ofAccounts(ctx, s, accounts, func(ctx context.Context, r *read.Reader,
		accounts []vedette.AccountName) (map[vedette.AccountName][]string, error) {
		return r.Namespaces(ctx, accounts...)
	}))
}

// FeedCounts is read.Reader.FeedCounts.
func (s *Store) FeedCounts(ctx context.Context) (map[vedette.FeedState]read.FeedCount, error) {
	counts, err := askAll(ctx, s, func(ctx context.Context, d *database) (map[vedette.FeedState]read.FeedCount, error) {
		return d.FeedCounts(ctx)
	})
	if err != nil {
		return nil, err
	}
	all := map[vedette.FeedState]read.FeedCount{}
	for _, count := range counts {
		for state, c := range count {
			of := all[state]
			all[state] = read.FeedCount{Feeds: of.Feeds + c.Feeds, Objects: of.Objects + c.Objects, Drift: of.Drift + c.Drift}
		}
	}
	return all, nil
}

// FeedCountsByAccount is read.Reader.FeedCountsByAccount.
func (s *Store) FeedCountsByAccount(ctx context.Context) (map[vedette.AccountName]map[vedette.FeedState]read.FeedCount, error) {
	return joinMaps(askAll(ctx, s, func(ctx context.Context,
		d *database) (map[vedette.AccountName]map[vedette.FeedState]read.FeedCount, error) {
		return d.FeedCountsByAccount(ctx)
	}))
}

// ObjectCounts is read.Reader.ObjectCounts.
func (s *Store) ObjectCounts(ctx context.Context, accounts ...vedette.AccountName) (map[vedette.Kind]int64, error) {
	counts, err := ofAccounts(ctx, s, accounts, func(ctx context.Context, r *read.Reader,
		accounts []vedette.AccountName) (map[vedette.Kind]int64, error) {
		return r.ObjectCounts(ctx, accounts...)
	})
	if err != nil {
		return nil, err
	}
	all := map[vedette.Kind]int64{}
	for _, count := range counts {
		for kind, n := range count {
			all[kind] += n
		}
	}
	return all, nil
}

// Stats is read.Reader.Stats.
func (s *Store) Stats(ctx context.Context) (read.Stats, error) {
	all, err := askAll(ctx, s, func(ctx context.Context, d *database) (read.Stats, error) { return d.Stats(ctx) })
	var total read.Stats
	for _, of := range all {
		total.Accounts += of.Accounts
		total.Objects += of.Objects
		total.Labels += of.Labels
		total.Bytes += of.Bytes
	}
	return total, err
}

// Inventory is read.Reader.Inventory.
func (s *Store) Inventory(ctx context.Context) (*read.Inventory, error) {
	if s.shards == nil {
		return s.Reader.Inventory(ctx)
	}
	parts, err := askAll(ctx, s, func(ctx context.Context, d *database) (*read.Inventory, error) { return d.Inventory(ctx) })
	if err != nil {
		return nil, err
	}
	s.shards.mu.Lock()
	before := s.shards.inventory
	s.shards.mu.Unlock()
	next, merged := before.Merge(parts)
	s.shards.mu.Lock()
	defer s.shards.mu.Unlock()
	s.shards.inventory = next
	return merged, nil
}

// Search is read.Reader.Search. Its order is that of the databases, and in each that of its own.
func (s *Store) Search(ctx context.Context, q read.SearchQuery) ([]read.SearchRow, error) {
	if s.shards == nil {
		return s.Reader.Search(ctx, q)
	}
	if err := q.Validate(); err != nil {
		return nil, err
	}
	counts := make([]int64, len(s.all())) // of what comes before the page; not needed for the first page
	if q.Offset > 0 {
		var err error
		if counts, err = s.countSearch(ctx, q); err != nil {
			return nil, err
		}
	}
	shares, offset := sharesOf[int64](s.all()), q.Offset
	for i, n := range counts {
		shares[i].values = []int64{min(offset, n)}
		offset -= min(offset, n)
	}
	lists, err := askWithin(ctx, q, shares, func(ctx context.Context, d share[int64]) ([]read.SearchRow, error) {
		of := q
		of.Offset = d.values[0]
		return d.Search(ctx, of)
	})
	if err != nil {
		return nil, err
	}
	var found []read.SearchRow
	for _, list := range lists {
		found = append(found, list[:min(len(list), q.Limit-len(found))]...)
	}
	return found, nil
}

func (s *Store) countSearch(ctx context.Context, q read.SearchQuery) ([]int64, error) {
	return askWithin(ctx, q, sharesOf[struct{}](s.all()), func(ctx context.Context, d share[struct{}]) (int64, error) {
		return d.CountSearch(ctx, q)
	})
}

// askWithin is ask for a search. With rules it asks one after the other, because each needs read.MaxSearchNames, which callers count once.
func askWithin[V, A any](ctx context.Context, q read.SearchQuery, shares []share[V],
	question func(ctx context.Context, d share[V]) (A, error)) ([]A, error) {
	if len(q.Rules) == 0 {
		return ask(ctx, shares, question)
	}
	var answers []A
	for i := range shares {
		answer, err := ask(ctx, shares[i:i+1], question)
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer...)
	}
	return answers, nil
}

// CountSearch is read.Reader.CountSearch.
func (s *Store) CountSearch(ctx context.Context, q read.SearchQuery) (int64, error) {
	counts, err := s.countSearch(ctx, q)
	return sum(counts), err
}

// ChangedObjects is read.Reader.ChangedObjects.
func (s *Store) ChangedObjects(since uint64, visit func(read.ObjectRef)) (now uint64, ok bool) {
	if s.shards == nil {
		return s.Reader.ChangedObjects(since, visit)
	}
	s.Refresh()
	all, known := s.all(), true
	now, ok = s.Changes.Since(since, func(c versions.ChangedObject) {
		number, id := versions.Part(c.KindID)
		var kind vedette.Kind
		isKnown := number < len(all)
		if isKnown {
			kind, isKnown = all[number].KindOf(id)
		}
		known = known && isKnown
		visit(read.ObjectRef{Key: vedette.Key{Kind: kind, Namespace: c.Namespace, Name: c.Name}, Account: c.Account, Application: c.Application})
	})
	return now, ok && known
}

// PublishOtherServer is read.Reader.PublishOtherServer.
func (s *Store) PublishOtherServer(m versions.Message) {
	if s.shards == nil {
		s.Reader.PublishOtherServer(m)
		return
	}
	for _, d := range s.shards.others { // first: the versions of the first database are those of all
		if of, concerns := m.OfPart(d.number); concerns {
			d.PublishOtherServer(of)
		}
	}
	of, _ := m.OfPart(0)
	s.AddNames(of)
	s.PublishOther(m.Effect())
}

// RunNameFilters is read.Reader.RunNameFilters for all databases.
func (s *Store) RunNameFilters(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	for _, d := range s.all() {
		group.Go(func() error { return inDatabase(d.name, d.RunNameFilters(running)) })
	}
	return group.Wait()
}

// BuildNameFilters is read.Reader.BuildNameFilters for all databases.
func (s *Store) BuildNameFilters(ctx context.Context) error {
	return s.tellAll(ctx, func(ctx context.Context, d *database) error { return d.BuildNameFilters(ctx) })
}
