package write

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// unsettledChanges are the changes of transactions whose outcome is not known. Whoever called got an error, and if the database has
// committed all the same, a second attempt changes nothing: without this, readers of live events would never be told. They are
// published when the transaction has certainly ended and they are stored.
type unsettledChanges struct {
	mu      sync.Mutex
	pending map[vedette.AccountName]unsettledPlan
	publish func([]commit.Change)
}

// unsettledPlan is the changes of an account. There are those of one transaction, because the next one waits for its end.
type unsettledPlan struct {
	changes []commit.Change
	until   time.Time // when the transaction has ended, even if nobody writes the account any more
}

// settleTime is after what time the database has ended a transaction whose connection is lost or idle.
const settleTime = 2 * sqldb.IdleTimeout

// OnSettled sets what is called with changes whose transaction has failed for its caller, and is committed all the same. It must
// not block, and may keep the slice. Call OnSettled before anything is written.
func (w *Writer) OnSettled(publish func([]commit.Change)) { w.unsettled.publish = publish }

// markUncertain notes that the outcome of a transaction is not known because it has ended with err, and what it has changed if it
// is committed.
func (w *Writer) markUncertain(account vedette.AccountName, changes []commit.Change, err error) {
	w.locks.MarkUncertain(account)
	isRefused := errors.Is(err, registry.ErrTerm) || errors.Is(err, registry.ErrNoAccount) || errors.Is(err, sqldb.ErrData)
	if len(changes) == 0 || isRefused {
		return
	}
	u := &w.unsettled
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pending == nil {
		u.pending = map[vedette.AccountName]unsettledPlan{}
	}
	u.pending[account] = unsettledPlan{append(u.pending[account].changes, changes...), time.Now().Add(settleTime)}
}

func (u *unsettledChanges) of(account vedette.AccountName) []commit.Change {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.pending[account].changes
}

// take removes what of returned.
func (u *unsettledChanges) take(account vedette.AccountName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.pending, account)
}

// old returns the accounts that nobody here has written since their transactions have ended.
func (u *unsettledChanges) old(now time.Time) (accounts []vedette.AccountName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for account, p := range u.pending {
		if !now.Before(p.until) {
			accounts = append(accounts, account)
		}
	}
	return accounts
}

// publishSettled publishes the changes of an account's transaction that has ended, as far as they are stored. What is not stored is written
// again, or was changed again since, and published then.
func (w *Writer) publishSettled(ctx context.Context, account vedette.AccountName) error {
	changes := w.unsettled.of(account)
	if len(changes) == 0 {
		return nil
	}
	stored, err := w.storedVersions(ctx, account, changes)
	if err != nil {
		return err
	}
	var settled []commit.Change
	for i, c := range changes {
		version, exists := stored[i]
		if c.Type == commit.Deleted && !exists || c.Type != commit.Deleted && exists && version == c.Version {
			settled = append(settled, c)
		}
	}
	w.unsettled.take(account)
	if len(settled) > 0 {
		w.unsettled.publish(settled)
	}
	return nil
}

// storedVersions returns the versions that are stored of changed objects, by their indexes.
func (w *Writer) storedVersions(ctx context.Context, account vedette.AccountName, changes []commit.Change) (map[int]string, error) {
	id, err := w.registry.AccountID(ctx, account)
	if err != nil {
		return nil, err
	}
	indexes := map[catalog.Key][]int{}
	var keys []catalog.Key
	for i, c := range changes {
		kindID, isKnown, err := w.kinds.LookupID(ctx, c.Key.Kind)
		if err != nil {
			return nil, err
		}
		if !isKnown {
			continue
		}
		key := catalog.Key{KindID: kindID, Namespace: c.Key.Namespace, Name: c.Key.Name}
		if indexes[key] == nil {
			keys = append(keys, key)
		}
		indexes[key] = append(indexes[key], i)
	}
	sortKeys(keys)
	stored := map[int]string{}
	err = w.dialect.lookup(ctx, w.db, id, keys, func(r storedRow) {
		for _, i := range indexes[r.Key] {
			stored[i] = r.version
		}
	})
	return stored, err
}

// RunSettling publishes what is committed of transactions whose outcome was not known, of accounts that this process does not
// write any more, until ctx ends. The changes of others are published with their next transaction.
func (w *Writer) RunSettling(ctx context.Context) error {
	tick := time.NewTicker(settleTime / 8)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			w.settleOld(ctx, now)
		}
	}
}

func (w *Writer) settleOld(ctx context.Context, now time.Time) {
	for _, account := range w.unsettled.old(now) {
		if err := w.publishSettled(ctx, account); errors.Is(err, registry.ErrNoAccount) {
			w.unsettled.take(account) // readers know that the account is gone
		}
	}
}
