package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/directory"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/versions"
)

// maxPlacements is how often an account is placed that is removed at the same time.
const maxPlacements = 3

// Register is registry.Registry.Register. A new account gets a database first.
func (s *Store) Register(ctx context.Context, a vedette.Account) (registry.Account, error) {
	if s.shards == nil {
		return s.Registry.Register(ctx, a)
	}
	if err := a.Name.Validate(); err != nil {
		return registry.Account{}, err
	}
	// Most accounts exist. Whoever acquires the account after this compares its term.
	if stored, err := s.Account(ctx, a.Name); err == nil {
		if !stored.Cluster.Same(a.Cluster) {
			return registry.Account{}, registry.NameConflict(a, stored.Cluster)
		}
		return stored, nil
	} else if !errors.Is(err, registry.ErrNoAccount) {
		return registry.Account{}, err
	}
	for tries := 1; ; tries++ {
		stored, err := s.registerNew(ctx, a)
		if !errors.Is(err, directory.ErrMoved) || tries == maxPlacements {
			return stored, err
		}
	}
}

func (s *Store) registerNew(ctx context.Context, a vedette.Account) (stored registry.Account, err error) {
	name, err := s.shards.directory.Place(ctx, a.Name, s.candidates(ctx))
	if err != nil {
		return stored, err
	}
	d, err := s.ofAccount(a.Name, name)
	if err != nil {
		return stored, err
	}
	err = s.shards.directory.Change(ctx, a.Name, name, func(ctx context.Context, term int64) (bool, int64, error) {
		if err := d.RaiseTerm(ctx, term); err != nil {
			return true, 0, err
		}
		stored, err = d.Registry.Register(ctx, a)
		return true, 0, err
	})
	return stored, inDatabase(d.name, err)
}

// candidates returns the databases that answer, for new accounts.
func (s *Store) candidates(ctx context.Context) []directory.Candidate {
	all := make([]*directory.Candidate, len(s.shards.others))
	_ = s.tellAll(ctx, func(ctx context.Context, d *database) error { // those that do not answer get no new accounts
		if d.name == directory.First || !d.HasAnswered() {
			return nil
		}
		if !d.IsShared() {
			all[d.number-1] = &directory.Candidate{Name: d.name}
			return nil
		}
		servers, err := d.SharingServers(ctx)
		if err != nil {
			return err
		}
		known := map[string]bool{}
		for _, server := range servers {
			known[server.Token] = true
		}
		all[d.number-1] = &directory.Candidate{Name: d.name, Knows: func(token string) bool { return known[token] }}
		return nil
	})
	var candidates []directory.Candidate
	for _, c := range all {
		if c != nil {
			candidates = append(candidates, *c)
		}
	}
	return candidates
}

// remove calls do, which removes an account or a part of it, in the account's database, and reports whether there was one. If nothing is
// left there, the account may be placed anew.
func (s *Store) remove(ctx context.Context, account vedette.AccountName,
	do func(ctx context.Context, d *database) (bool, error)) (found bool, err error) {
	if s.shards == nil {
		return do(ctx, s.first())
	}
	s.shards.directory.Forget(account)
	d, err := s.of(ctx, account)
	if err != nil {
		return false, err
	}
	isGone := false
	err = s.shards.directory.Change(ctx, account, d.name, func(ctx context.Context, _ int64) (bool, int64, error) {
		removed, err := do(ctx, d)
		if err != nil {
			return true, 0, err
		}
		found = found || removed
		remains, next, err := d.Remains(ctx, account)
		isGone = err == nil && !remains
		return remains, next, err
	})
	if errors.Is(err, directory.ErrMoved) && d.name == directory.First {
		// A server that knew of one database only has registered it there, or there is none.
		if _, isEntered, findErr := s.shards.directory.Entered(ctx, account); findErr == nil && !isEntered {
			return do(ctx, d)
		}
	}
	if isGone { // now it may be in another database
		s.PublishOutcome(versions.AccountEffect(account, true), err)
	}
	return found, inDatabase(d.name, err)
}

// DiscardAccount is registry.Registry.DiscardAccount.
func (s *Store) DiscardAccount(ctx context.Context, account vedette.AccountName) (bool, error) {
	return s.remove(ctx, account, func(ctx context.Context, d *database) (bool, error) { return d.DiscardAccount(ctx, account) })
}

// RetireAccount is registry.Registry.RetireAccount.
func (s *Store) RetireAccount(ctx context.Context, account vedette.AccountName) (bool, error) {
	return s.remove(ctx, account, func(ctx context.Context, d *database) (bool, error) { return d.RetireAccount(ctx, account) })
}

// RemoveOrphan is registry.Registry.RemoveOrphan.
func (s *Store) RemoveOrphan(ctx context.Context, account vedette.AccountName, term vedette.Term) (bool, error) {
	return s.remove(ctx, account, func(ctx context.Context, d *database) (bool, error) { return d.RemoveOrphan(ctx, account, term) })
}

// RetireOrphan is registry.Registry.RetireOrphan.
func (s *Store) RetireOrphan(ctx context.Context, account vedette.AccountName, term vedette.Term) (bool, error) {
	return s.remove(ctx, account, func(ctx context.Context, d *database) (bool, error) { return d.RetireOrphan(ctx, account, term) })
}

// RemoveAccount is write.Writer.RemoveAccount.
func (s *Store) RemoveAccount(ctx context.Context, account vedette.AccountName) error {
	if s.shards == nil {
		return s.Writer.RemoveAccount(ctx, account)
	}
	found, err := s.DiscardAccount(ctx, account)
	if err == nil && !found {
		err = registry.ErrNoAccount
	}
	if err != nil {
		return s.WrapError("remove account "+string(account), err)
	}
	return s.Sweep(ctx)
}

// Sweep is write.Writer.Sweep for all databases. It also removes accounts that a process left in the wrong one when it ended.
func (s *Store) Sweep(ctx context.Context) error {
	if s.shards == nil {
		return s.Writer.Sweep(ctx)
	}
	return s.tellAll(ctx, func(ctx context.Context, d *database) error {
		return errors.Join(s.removeStrays(ctx, d), d.Sweep(ctx))
	})
}

func (s *Store) removeStrays(ctx context.Context, d *database) error {
	if d.name == directory.First { // what is not entered is there
		return nil
	}
	names, err := d.AccountNames(ctx)
	if err != nil {
		return err
	}
	strays, err := s.shards.directory.Strays(ctx, d.name, names)
	if err != nil {
		return err
	}
	for _, account := range strays {
		s.DB.Log.Warn("removing an account that another process left in the wrong database", "account", account, "database", d.name)
		if err := s.shards.directory.RemoveStray(ctx, account, d.name, func(ctx context.Context) error {
			_, err := d.DiscardAccount(ctx, account)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Acquire is registry.Registry.Acquire.
func (s *Store) Acquire(ctx context.Context, account vedette.AccountName, h registry.CacherClaim) (vedette.Term, error) {
	d, err := s.of(ctx, account)
	if err != nil {
		return 0, err
	}
	return d.Registry.Acquire(ctx, account, h)
}

// Release is registry.Registry.Release.
func (s *Store) Release(ctx context.Context, account vedette.AccountName, term vedette.Term, server vedette.ServerID) error {
	d, err := s.of(ctx, account)
	if err != nil {
		return err
	}
	return d.Registry.Release(ctx, account, term, server)
}

// ReleaseAll is registry.Registry.ReleaseAll for all databases.
func (s *Store) ReleaseAll(ctx context.Context) error {
	return s.tellAll(ctx, func(ctx context.Context, d *database) error { return d.Registry.ReleaseAll(ctx) })
}

// ReleaseServer is registry.Registry.ReleaseServer for all databases.
func (s *Store) ReleaseServer(ctx context.Context, server vedette.ServerID) error {
	return s.tellAll(ctx, func(ctx context.Context, d *database) error { return d.Registry.ReleaseServer(ctx, server) })
}

// ReleaseEnded is registry.Registry.ReleaseEnded for all databases. A server that was evicted from the first is evicted from the
// others before.
func (s *Store) ReleaseEnded(ctx context.Context) (int64, error) {
	var released atomic.Int64
	err := s.tellAll(ctx, func(ctx context.Context, d *database) error {
		if err := s.evictEnded(ctx, d); err != nil {
			return err
		}
		n, err := d.Registry.ReleaseEnded(ctx)
		released.Add(n)
		return err
	})
	return released.Load(), err
}

// evictEnded deletes the rows of processes that have none in the first database. A process that starts writes that one first.
func (s *Store) evictEnded(ctx context.Context, d *database) error {
	if d.name == directory.First {
		return nil
	}
	here, err := d.SharingServers(ctx)
	if err != nil {
		return err
	}
	servers, err := s.DB.SharingServers(ctx)
	if err != nil {
		return err
	}
	tokens := map[string]bool{}
	for _, server := range servers {
		tokens[server.Token] = true
	}
	for _, server := range here {
		if tokens[server.Token] {
			continue
		}
		if err := d.EvictProcess(ctx, server.ID, server.Token); err != nil {
			return err
		}
	}
	return nil
}

// assigned asks who has accounts.
func (s *Store) assigned(ctx context.Context, names []vedette.AccountName,
	of func(*registry.Registry, context.Context, []vedette.AccountName) ([]registry.Assigned, error)) ([]registry.Assigned, error) {
	if s.shards == nil || len(names) == 0 {
		return of(s.Registry, ctx, names)
	}
	shares, err := s.splitAccounts(ctx, names)
	if err != nil {
		return nil, err
	}
	lists, err := ask(ctx, shares, func(ctx context.Context, d share[vedette.AccountName]) ([]registry.Assigned, error) {
		return of(d.Registry, ctx, d.values)
	})
	return slices.Concat(lists...), err
}

// Assigned is registry.Registry.Assigned.
func (s *Store) Assigned(ctx context.Context, names []vedette.AccountName) ([]registry.Assigned, error) {
	return s.assigned(ctx, names, (*registry.Registry).Assigned)
}

// Unassigned is registry.Registry.Unassigned.
func (s *Store) Unassigned(ctx context.Context, names []vedette.AccountName) ([]registry.Assigned, error) {
	return s.assigned(ctx, names, (*registry.Registry).Unassigned)
}

// Accounts is registry.Registry.Accounts.
func (s *Store) Accounts(ctx context.Context) ([]registry.Account, error) {
	return s.AccountsNamed(ctx)
}

// AccountsNamed is registry.Registry.AccountsNamed.
func (s *Store) AccountsNamed(ctx context.Context, names ...vedette.AccountName) ([]registry.Account, error) {
	return accountList(ctx, s, names, func(r *registry.Registry, ctx context.Context,
		names []vedette.AccountName) ([]registry.Account, error) {
		return r.AccountsNamed(ctx, names...)
	}, func(a registry.Account) vedette.AccountName { return a.Name })
}

// OrphanedAccounts is registry.Registry.OrphanedAccounts.
func (s *Store) OrphanedAccounts(ctx context.Context) ([]registry.Account, error) {
	return accountList(ctx, s, nil, func(r *registry.Registry, ctx context.Context, _ []vedette.AccountName) ([]registry.Account, error) {
		return r.OrphanedAccounts(ctx)
	}, func(a registry.Account) vedette.AccountName { return a.Name })
}

// AccountSyncs is registry.Registry.AccountSyncs.
func (s *Store) AccountSyncs(ctx context.Context, names ...vedette.AccountName) ([]registry.Sync, error) {
	return accountList(ctx, s, names, func(r *registry.Registry, ctx context.Context, names []vedette.AccountName) ([]registry.Sync, error) {
		return r.AccountSyncs(ctx, names...)
	}, func(a registry.Sync) vedette.AccountName { return a.Account })
}

// AccountNames is registry.Registry.AccountNames.
func (s *Store) AccountNames(ctx context.Context) ([]vedette.AccountName, error) {
	return accountList(ctx, s, nil, func(r *registry.Registry, ctx context.Context, _ []vedette.AccountName) ([]vedette.AccountName, error) {
		return r.AccountNames(ctx)
	}, func(a vedette.AccountName) vedette.AccountName { return a })
}

// accountList merges lists of accounts that are in the order of their names.
func accountList[T any](ctx context.Context, s *Store, names []vedette.AccountName,
	list func(*registry.Registry, context.Context, []vedette.AccountName) ([]T, error), nameOf func(T) vedette.AccountName) ([]T, error) {
	if s.shards == nil {
		return list(s.Registry, ctx, names)
	}
	shares, err := s.splitAccounts(ctx, names)
	if err != nil {
		return nil, err
	}
	lists, err := ask(ctx, shares, func(ctx context.Context, d share[vedette.AccountName]) ([]T, error) {
		return list(d.Registry, ctx, d.values)
	})
	if err != nil {
		return nil, err
	}
	all := append([]T{}, slices.Concat(lists...)...)
	slices.SortStableFunc(all, func(a, b T) int { return strings.Compare(string(nameOf(a)), string(nameOf(b))) })
	return all, nil
}

// Account is registry.Registry.Account.
func (s *Store) Account(ctx context.Context, name vedette.AccountName) (registry.Account, error) {
	d, err := s.toRead(ctx, name)
	if err != nil {
		return registry.Account{}, err
	}
	return d.Account(ctx, name)
}

// AccountID is registry.Registry.AccountID. The id is of the account's database.
func (s *Store) AccountID(ctx context.Context, account vedette.AccountName) (int64, error) {
	d, err := s.toRead(ctx, account)
	if err != nil {
		return 0, err
	}
	return d.AccountID(ctx, account)
}

// HasSimilarAccount is registry.Registry.HasSimilarAccount.
func (s *Store) HasSimilarAccount(ctx context.Context, name vedette.AccountName) (bool, error) {
	n, err := s.CountSimilar(ctx, name)
	return n > 1, err
}

// CountSimilar is registry.Registry.CountSimilar.
func (s *Store) CountSimilar(ctx context.Context, name vedette.AccountName) (int, error) {
	if s.shards == nil {
		return s.Registry.CountSimilar(ctx, name)
	}
	counts, err := askAll(ctx, s, func(ctx context.Context, d *database) (int, error) { return d.CountSimilar(ctx, name) })
	return sum(counts), err
}

// Servers is registry.Registry.Servers.
func (s *Store) Servers(ctx context.Context, accounts []vedette.AccountName) (map[vedette.AccountName]vedette.ServerID, error) {
	if s.shards == nil || len(accounts) == 0 {
		return s.Registry.Servers(ctx, accounts)
	}
	shares, err := s.splitAccounts(ctx, accounts)
	if err != nil {
		return nil, err
	}
	return joinMaps(ask(ctx, shares, func(ctx context.Context,
		d share[vedette.AccountName]) (map[vedette.AccountName]vedette.ServerID, error) {
		return d.Servers(ctx, d.values)
	}))
}

// AccountSizes is registry.Registry.AccountSizes.
func (s *Store) AccountSizes(ctx context.Context) (map[vedette.AccountName]int64, error) {
	return joinMaps(askAll(ctx, s, func(ctx context.Context, d *database) (map[vedette.AccountName]int64, error) {
		return d.AccountSizes(ctx)
	}))
}

// joinMaps joins what databases answer of their accounts.
func joinMaps[V any](answers []map[vedette.AccountName]V, err error) (map[vedette.AccountName]V, error) {
	if err != nil {
		return nil, err
	}
	if len(answers) == 1 {
		return answers[0], nil
	}
	all := map[vedette.AccountName]V{}
	for _, answer := range answers {
		maps.Copy(all, answer)
	}
	return all, nil
}

// MarkSettled is registry.Registry.MarkSettled.
func (s *Store) MarkSettled(ctx context.Context, account vedette.AccountName, term vedette.Term, complete bool) error {
	d, err := s.of(ctx, account)
	if err != nil {
		return err
	}
	return d.MarkSettled(ctx, account, term, complete)
}

// RecordLastSeen is registry.Registry.RecordLastSeen.
func (s *Store) RecordLastSeen(ctx context.Context, entries []registry.LastSeen) error {
	if s.shards == nil {
		return s.Registry.RecordLastSeen(ctx, entries)
	}
	shares, err := split(ctx, s, entries, func(e registry.LastSeen) vedette.AccountName { return e.Account })
	if err != nil {
		return err
	}
	return tell(ctx, shares, func(ctx context.Context, d share[registry.LastSeen]) error { return d.RecordLastSeen(ctx, d.values) })
}

// RecordSharedFreshness is registry.Registry.RecordSharedFreshness, for all databases. Registries does it for each.
func (s *Store) RecordSharedFreshness(ctx context.Context, at time.Time, joining []registry.LastSeen) error {
	if s.shards == nil {
		return s.Registry.RecordSharedFreshness(ctx, at, joining)
	}
	shares, err := split(ctx, s, joining, func(e registry.LastSeen) vedette.AccountName { return e.Account })
	if err != nil {
		return err
	}
	for _, d := range s.all() { // also without any that join
		if !slices.ContainsFunc(shares, func(sh share[registry.LastSeen]) bool { return sh.name == d.name }) {
			shares = append(shares, share[registry.LastSeen]{database: d})
		}
	}
	return tell(ctx, shares, func(ctx context.Context, d share[registry.LastSeen]) error {
		return d.RecordSharedFreshness(ctx, at, d.values)
	})
}

// Registries returns which of some accounts each database has, so that one that does not answer keeps no other waiting. With one
// database it returns nil.
func (s *Store) Registries(ctx context.Context, accounts []vedette.AccountName) (map[*registry.Registry][]vedette.AccountName, error) {
	if s.shards == nil {
		return nil, nil
	}
	shares, err := split(ctx, s, accounts, func(a vedette.AccountName) vedette.AccountName { return a })
	if err != nil {
		return nil, err
	}
	byRegistry := map[*registry.Registry][]vedette.AccountName{}
	for _, d := range shares {
		byRegistry[d.Registry] = d.values
	}
	return byRegistry, nil
}
