package assigner

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/registry"
)

const freshnessInterval = 15 * time.Second // at which it is stored

// freshnessWriter stores the freshness of accounts of one database.
type freshnessWriter interface {
	RecordLastSeen(ctx context.Context, sightings []registry.LastSeen) error
	RecordSharedFreshness(ctx context.Context, at time.Time, joining []registry.LastSeen) error
}

// storedFreshness is what is stored in each database. One that does not answer keeps no other waiting.
type storedFreshness struct {
	databases map[freshnessWriter]*databaseFreshness // used by storeFreshness only
	storing   sync.WaitGroup
}

// databaseFreshness is what is stored in one database.
type databaseFreshness struct {
	ended []registry.LastSeen // that were not passed to shared yet

	mu     sync.Mutex      // held while it is stored
	shared sharedFreshness // guarded by mu
}

// storeFreshness stores the freshness of the accounts for which it has changed. With several databases it does not wait for them.
func (r *Registry) storeFreshness(ctx context.Context) {
	current := r.currentFreshness()
	byStore, err := r.freshnessByStore(ctx, current)
	if err != nil {
		if ctx.Err() == nil {
			r.log.Warn("retrying to store freshness", "accounts", len(current), "error", err)
		}
		return
	}
	r.mu.Lock()
	ended := r.endedFreshness
	r.endedFreshness = nil
	r.mu.Unlock()
	for store := range byStore {
		if r.freshness.databases[store] == nil {
			r.freshness.databases[store] = &databaseFreshness{shared: newSharedFreshness()}
		}
	}
	for store, d := range r.freshness.databases {
		d.ended = append(d.ended, ended...)
		if !d.mu.TryLock() { // it does not answer
			continue
		}
		d.shared.ended(d.ended)
		d.ended = nil
		storeIn := func() {
			defer d.mu.Unlock()
			r.storeFreshnessIn(ctx, store, d, byStore[store])
		}
		if len(r.freshness.databases) == 1 {
			storeIn()
		} else {
			r.freshness.storing.Go(storeIn)
		}
	}
}

// currentFreshness returns what agents report now.
func (r *Registry) currentFreshness() (current []registry.LastSeen) {
	for _, h := range r.holders() {
		if h.member != nil {
			current = append(current, h.member.lastSeen(h.account, h.term))
		}
	}
	return current
}

// freshnessByStore returns where each account is stored.
func (r *Registry) freshnessByStore(ctx context.Context, current []registry.LastSeen) (map[freshnessWriter][]registry.LastSeen, error) {
	accounts := make([]vedette.AccountName, len(current))
	for i, c := range current {
		accounts[i] = c.Account
	}
	registries, err := r.store.Registries(ctx, accounts)
	if err != nil {
		return nil, err
	}
	if registries == nil {
		return map[freshnessWriter][]registry.LastSeen{r.store: current}, nil
	}
	byStore := make(map[freshnessWriter][]registry.LastSeen, len(registries))
	for of, names := range registries {
		named := map[vedette.AccountName]bool{}
		for _, name := range names {
			named[name] = true
		}
		byStore[of] = slices.DeleteFunc(slices.Clone(current), func(c registry.LastSeen) bool { return !named[c.Account] })
	}
	return byStore, nil
}

// storeFreshnessIn stores the freshness of the accounts of a database, which is locked.
func (r *Registry) storeFreshnessIn(ctx context.Context, store freshnessWriter, d *databaseFreshness, current []registry.LastSeen) {
	p := d.shared.plan(time.Now(), current)
	if err := storePlan(ctx, store, d, p); err != nil && ctx.Err() == nil {
		r.log.Warn("retrying to store freshness", "accounts", len(current), "error", err)
	}
}

func storePlan(ctx context.Context, store freshnessWriter, d *databaseFreshness, p freshnessPlan) error {
	if len(p.separate) > 0 {
		if err := store.RecordLastSeen(ctx, p.separate); err != nil {
			return err
		}
	}
	d.shared.storedSeparately(p)
	if p.at.IsZero() {
		return nil
	}
	if err := store.RecordSharedFreshness(ctx, p.at, p.joining); err != nil {
		return err
	}
	d.shared.joined(p)
	return nil
}
