package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/namefilter"
)

// nameFilters say which accounts cannot have what is searched for, so that a search for a rare text
// need not compare the names of all objects. They are in memory, as long as this process is the only
// one that writes the database. An account whose filter is not built yet may have everything.
type nameFilters struct {
	mu    sync.RWMutex
	ready map[int64]*namefilter.Filter // by account
	next  map[int64]*namefilter.Filter // those that are being built; their names are incomplete
}

// add adds the names of new objects before they are committed. The account is locked.
func (n *nameFilters) add(p *plan) {
	n.mu.RLock()
	ready, next := n.ready[p.baseline.accountID], n.next[p.baseline.accountID]
	n.mu.RUnlock()
	for _, f := range []*namefilter.Filter{ready, next} {
		if f == nil {
			continue
		}
		for i := range p.rows {
			key := &p.rows[i].rowKey
			if _, exists := p.baseline.existing[*key]; !exists {
				f.Add(key.kindID, key.namespace, key.name)
			}
		}
	}
}

func (n *nameFilters) needsBuilding(accountID int64) bool {
	n.mu.RLock()
	f := n.ready[accountID]
	n.mu.RUnlock()
	return f == nil || f.IsWorn()
}

// begin makes writers add their names to a new filter.
func (n *nameFilters) begin(accountID int64) *namefilter.Filter {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = map[int64]*namefilter.Filter{}
	}
	f := namefilter.New()
	n.next[accountID] = f
	return f
}

// end makes searches use the filter that was begun, if all names are in it.
func (n *nameFilters) end(accountID int64, complete bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if complete {
		if n.ready == nil {
			n.ready = map[int64]*namefilter.Filter{}
		}
		n.ready[accountID] = n.next[accountID]
	}
	delete(n.next, accountID)
}

// forgetExcept drops the filters of accounts that do not exist any more.
func (n *nameFilters) forgetExcept(exists func(accountID int64) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range n.ready {
		if !exists(id) {
			delete(n.ready, id)
		}
	}
}

// mayContain reports whether an account may have an object of one of the kinds with the pattern in
// its name or namespace.
func (n *nameFilters) mayContain(accountID int64, p namefilter.Pattern, kinds []int64) bool {
	n.mu.RLock()
	f := n.ready[accountID]
	n.mu.RUnlock()
	return f == nil || f.MayContain(p, kinds)
}

// nameFilterInterval is how often filters are built: until then searches read accounts that have
// just appeared, or have many new names.
const nameFilterInterval = 5 * time.Second

// RunNameFilters keeps filters of the names of all accounts until ctx ends, which make searches for
// rare texts fast. They take some kilobytes per account.
func (s *Store) RunNameFilters(ctx context.Context) error {
	ticker := time.NewTicker(nameFilterInterval)
	defer ticker.Stop()
	for {
		if err := s.BuildNameFilters(ctx); err != nil && ctx.Err() == nil {
			s.log.Debug("cannot read the names of objects; searches read all objects until they are read", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// BuildNameFilters builds the filters that are missing, and those that have become too old. It reads
// the keys of one account after the other.
func (s *Store) BuildNameFilters(ctx context.Context) error {
	if !s.isOnlyWriter() {
		return nil
	}
	names, err := s.accountNames(ctx)
	if err != nil {
		return s.wrapError("read the accounts", err)
	}
	s.forgetNameFilters(names)
	for id, name := range names.visible {
		if !s.nameFilters.needsBuilding(id) {
			continue
		}
		if err := s.buildNameFilter(ctx, id, name); err != nil {
			return s.wrapError("read the names of the objects of account "+string(name), err)
		}
	}
	return nil
}

// forgetNameFilters keeps the filters of retired accounts, which may return with their objects.
func (s *Store) forgetNameFilters(names *accountNames) {
	hidden := map[int64]bool{}
	for _, id := range names.hidden {
		hidden[id] = true
	}
	s.nameFilters.forgetExcept(func(id int64) bool {
		_, visible := names.visible[id]
		return visible || hidden[id]
	})
}

// buildNameFilter reads the names of an account. Names that are committed meanwhile are added by
// their writers. A writer that began before it knew of the filter ends first, because it holds the
// account's lock; if it is not known whether its transaction has ended, the account is left for the
// next time.
func (s *Store) buildNameFilter(ctx context.Context, accountID int64, account vedette.AccountName) (err error) {
	f, complete := s.nameFilters.begin(accountID), false
	defer func() { s.nameFilters.end(accountID, complete) }()
	unlock, err := s.locks.Lock(ctx, account)
	if err != nil {
		return err
	}
	uncertain := s.locks.IsUncertain(account)
	unlock()
	if uncertain {
		return nil
	}
	err = s.queryEach(ctx, func(rows *sql.Rows) error {
		var kind int64
		var namespace, name string
		err := rows.Scan(&kind, &namespace, &name)
		f.Add(kind, namespace, name)
		return err
	}, fmt.Sprintf(`SELECT o.kind_id, o.namespace, o.name FROM objects o%s WHERE o.account_id = %d`, s.dialect.keyHint, accountID))
	if err == nil {
		f.Compact()
		complete = true
	}
	return err
}
