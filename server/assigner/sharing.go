package assigner

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store/registry"
)

// How often a server that shares its database looks what other servers have done with accounts. They also tell it, but may not reach it.
const (
	unassignedInterval = time.Second      // for accounts that nobody has any more, and for which agents stand by here
	assignedInterval   = 10 * time.Second // for all accounts that agents have registered here
	maxNamedAccounts   = 500              // that one query names
)

// SetAlive makes the registry one of several that share a database. isAlive reports whether a server is alive, as far as is known; it may
// use the database. Call SetAlive before the first agent connects.
func (r *Registry) SetAlive(isAlive func(context.Context, vedette.ServerID) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isAlive = isAlive
}

// elsewhere returns the cacher of a stored account if it is connected to another server that is alive; otherwise nil.
func (r *Registry) elsewhere(ctx context.Context, row registry.Assigned) *assignment.Elsewhere {
	if !r.isElsewhere(ctx, row) {
		return nil
	}
	return &assignment.Elsewhere{Server: row.Server, Agent: row.Holder, Term: row.Term}
}

func (r *Registry) isElsewhere(ctx context.Context, row registry.Assigned) bool {
	r.mu.Lock()
	isAlive := r.isAlive
	r.mu.Unlock()
	return isAlive != nil && row.Holder != "" && row.Server != r.server && isAlive(ctx, row.Server)
}

// ServerEnded lets agents of this server take over the accounts of a server that has ended, and for which they stand by.
func (r *Registry) ServerEnded(server vedette.ServerID) {
	for account, e := range r.allElsewhere() {
		if e.Server == server {
			r.step(assignment.ElsewhereEnded{Account: account, Term: e.Term})
		}
	}
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
		err := r.takeUnassigned(ctx)
		if err == nil && time.Since(checked) >= assignedInterval {
			checked = time.Now()
			err = r.checkAssigned(ctx)
		}
		if err != nil && ctx.Err() == nil {
			r.log.Warn("retrying to read which accounts other servers have", "error", err)
		}
	})
}

// takeUnassigned lets agents take over the accounts that nobody has any more.
func (r *Registry) takeUnassigned(ctx context.Context) error {
	standby := r.allElsewhere()
	if len(standby) == 0 {
		return nil
	}
	rows, err := r.store.Unassigned(ctx)
	for _, row := range rows {
		if _, standsBy := standby[row.Account]; standsBy {
			r.step(assignment.ElsewhereEnded{Account: row.Account, Term: row.Term})
		}
	}
	return err
}

// checkAssigned compares with the store who has the accounts that agents have registered here. An account without a row was removed.
func (r *Registry) checkAssigned(ctx context.Context) error {
	standby := r.allElsewhere()
	held := map[vedette.AccountName]holder{}
	for _, h := range r.holders() {
		if h.member != nil {
			held[h.account] = h
		}
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(standby)), maps.Keys(held))
	slices.Sort(names)
	for chunk := range slices.Chunk(names, maxNamedAccounts) {
		rows, err := r.store.Assigned(ctx, chunk)
		if err != nil {
			return err
		}
		stored := map[vedette.AccountName]registry.Assigned{}
		for _, row := range rows {
			stored[row.Account] = row
		}
		for _, name := range chunk {
			row, exists := stored[name]
			if e, standsBy := standby[name]; standsBy && (!exists || !r.isElsewhere(ctx, row)) {
				r.step(assignment.ElsewhereEnded{Account: name, Term: max(e.Term, row.Term)})
			}
			// The assignment that was read here is the older one. So a later term in the store is that of another server.
			if h, isHeld := held[name]; isHeld && (!exists || row.Term > h.term) {
				r.step(assignment.Revoked{Member: h.member.id, Account: name, Term: h.term, Reason: registry.ErrTerm})
			}
		}
	}
	return nil
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
