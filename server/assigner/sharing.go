package assigner

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store/registry"
)

// How often a server that shares its database looks what other servers have done with accounts. They also tell it at once.
const (
	// unassignedInterval is for accounts that nobody has any more, while another server is not heard that could say so.
	unassignedInterval = time.Second
	assignedInterval   = 10 * time.Second // for all accounts that agents have registered here
	maxNamedAccounts   = 500              // that one query names
)

// Share makes the registry one of several that share a database. Call it before the first agent connects.
func (r *Registry) Share(s Sharing) { r.sharing = &s }

// elsewhere returns the cacher of a stored account if it is connected to another server that is alive; otherwise nil.
func (r *Registry) elsewhere(ctx context.Context, row registry.Assigned) *assignment.Elsewhere {
	if !r.isElsewhere(ctx, row) {
		return nil
	}
	return &assignment.Elsewhere{Server: row.Server, Agent: row.Holder, Term: row.Term}
}

func (r *Registry) isElsewhere(ctx context.Context, row registry.Assigned) bool {
	return r.sharing != nil && row.Holder != "" && row.Server != r.server && r.sharing.IsAlive(ctx, row.Server)
}

// ServerEnded lets agents of this server take over the accounts of a server that has ended, and for which they stand by.
func (r *Registry) ServerEnded(server vedette.ServerID) {
	for account, e := range r.allElsewhere() {
		if e.Server == server {
			r.step(assignment.ElsewhereEnded{Account: account, Term: e.Term})
		}
	}
	r.hasEnded.Store(true) // it may have had others for a moment
}

// allElsewhere returns the accounts for which agents stand by here, and whose cachers are connected to other servers.
func (r *Registry) allElsewhere() map[vedette.AccountName]assignment.Elsewhere {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[vedette.AccountName]assignment.Elsewhere{}
	r.fleet.EachElsewhere(func(name vedette.AccountName, e assignment.Elsewhere) { all[name] = e })
	return all
}

// watchAssignments looks what other servers have done with accounts, until ctx ends.
func (r *Registry) watchAssignments(ctx context.Context) {
	checked := time.Now()
	runEvery(ctx, unassignedInterval, func() {
		var err error
		if time.Since(checked) >= assignedInterval {
			checked = time.Now()
			err = r.readAssigned(ctx, r.assigned())
		} else if r.hasEnded.Swap(false) || !r.hearsAll() {
			err = r.readUnassigned(ctx)
		}
		if err != nil && ctx.Err() == nil {
			r.log.Warn("retrying to read which accounts other servers have", "error", err)
		}
	})
}

// readUnassigned reads which of the accounts for which agents stand by here nobody has any more.
func (r *Registry) readUnassigned(ctx context.Context) error {
	names := slices.Sorted(maps.Keys(r.allElsewhere()))
	for chunk := range slices.Chunk(names, maxNamedAccounts) {
		rows, err := r.store.Unassigned(ctx, chunk)
		if err != nil {
			return err
		}
		for _, row := range rows {
			r.step(assignment.Looked{Account: row.Account, Exists: true, Term: row.Term})
		}
	}
	return nil
}

// assigned returns the accounts that agents have registered here and that somebody has, as far as is known, with the terms of
// those that agents report here.
func (r *Registry) assigned() map[vedette.AccountName]vedette.Term {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[vedette.AccountName]vedette.Term{}
	r.fleet.Accounts(func(a assignment.AccountStatus) {
		switch {
		case a.Cacher != 0:
			all[a.Account] = a.Term
		case a.IsElsewhere:
			all[a.Account] = 0
		}
	})
	return all
}

// readAssigned reads who has accounts, and lets the fleet compare. An account without a row was removed. What was known is older than what
// is read, so a later term in the store is that of another server. After an error, nothing more is read.
func (r *Registry) readAssigned(ctx context.Context, known map[vedette.AccountName]vedette.Term) (err error) {
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(known)), maxNamedAccounts) {
		var rows []registry.Assigned
		if err == nil {
			rows, err = r.store.Assigned(ctx, chunk)
		}
		stored := map[vedette.AccountName]registry.Assigned{}
		for _, row := range rows {
			stored[row.Account] = row
		}
		for _, name := range chunk {
			row, exists := stored[name]
			looked := assignment.Looked{Account: name, Exists: exists, Term: row.Term, Err: err}
			if !exists {
				looked.Term = known[name]
			}
			if err == nil {
				looked.Elsewhere = r.elsewhere(ctx, row)
			}
			r.step(looked)
		}
	}
	return err
}

// looks are accounts about which the fleet wants to know who has them.
type looks struct {
	mu    sync.Mutex
	names map[vedette.AccountName]vedette.Term // terms are not known
	added chan struct{}                        // holds a token if there are names
}

func (l *looks) add(name vedette.AccountName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names[name] = 0
	select {
	case l.added <- struct{}{}:
	default:
	}
}

func (l *looks) take() map[vedette.AccountName]vedette.Term {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := l.names
	l.names = map[vedette.AccountName]vedette.Term{}
	return names
}

// watchLooks reads who has accounts, as soon as the fleet wants to know it, until ctx ends. What is wanted meanwhile is read together.
func (r *Registry) watchLooks(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.looks.added:
		}
		if err := r.readAssigned(ctx, r.looks.take()); err != nil && ctx.Err() == nil {
			r.log.Warn("cannot read which accounts other servers have: it is tried again within 10 seconds", "error", err)
		}
	}
}

// ReportedAccount says up to when an account is complete that an agent of this server reports. The times are zero if they are unknown.
type ReportedAccount struct {
	Account             vedette.AccountName
	FreshAt, CompleteAt time.Time
}

// ReportedAccounts returns the accounts that agents of this server report.
func (r *Registry) ReportedAccounts() (all []ReportedAccount) {
	for _, h := range r.holders() {
		if h.member != nil {
			all = append(all, ReportedAccount{h.account, h.member.freshnessIn(h.account, h.term), h.member.completenessIn(h.account, h.term)})
		}
	}
	return all
}
