package assignment

import (
	"maps"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

const (
	// An account that was assigned within takeoverTenure, or that a standby took over within
	// takeoverPause, waits until the connection of its silent cacher ends. So an agent under the load
	// of its start loses nothing, and agents that fall silent in turns do not pass an account to and fro.
	takeoverTenure = 5 * time.Second
	takeoverPause  = 5 * time.Minute
)

// silentTakeovers are the moves of accounts away from silent agents, until all that began have ended. None waits for the others: one may
// take long, because its account is locked in the database.
type silentTakeovers struct {
	open  int
	taken map[vedette.AgentID]int
}

// takeOverFromSilent lets standbys take over from agents that are silent, before their connections end. A
// frozen process keeps its connection, which ends only after several heartbeats.
//
// An account goes only to a standby that was heard regularly during the whole silence: if the
// server's network stands still, no agent is heard, and nothing moves. The silent agent keeps its
// connection and becomes a standby, so that it comes back without a new registration. It gets accounts
// only to balance agents, one after the other.
func (f *Fleet) takeOverFromSilent() {
	if !f.anySilent() {
		return
	}
	for _, a := range f.sortedAccounts() {
		to, remote := f.findTakeover(a)
		if to == nil && remote == nil {
			continue
		}
		f.silent.open++
		if remote != nil {
			f.makeOffer(a, remote, ReasonSilent)
		} else {
			f.move(a, to, ReasonSilent)
		}
	}
}

func (f *Fleet) anySilent() bool {
	for _, m := range f.members {
		if m.liveness.isSilent() {
			return true
		}
	}
	return false
}

// findTakeover returns the standby that may take over from a silent cacher, at this server or at another one; both are nil if the
// account stays.
func (f *Fleet) findTakeover(a *account) (*member, *remoteStandby) {
	from := f.members[a.cacher]
	if !a.isAtRest() || a.offer != nil || from == nil || !from.liveness.isSilent() || f.now.Sub(a.assignedAt) < takeoverTenure ||
		f.now.Sub(a.takenOverAt) < takeoverPause {
		return nil, nil
	}
	var local *member
	for _, m := range f.byLoad(a.candidates) {
		if m != from && m.liveness.wasHeardFor(from.liveness.silentAfter()) && m.canReplace(from, a.name) {
			local = m
			break
		}
	}
	for _, r := range f.remoteStandbys(a) {
		if r.wasHeardFor(from.liveness.silentAfter(), f.now) && r.canReplace(from, a.name) && !f.hasRefused(a, &r) {
			if local == nil || r.Load < local.load {
				return nil, &r
			}
			break
		}
	}
	return local, nil
}

// move makes a standby the cacher, and the cacher a standby. The account must be at rest.
func (f *Fleet) move(a *account, to *member, reason ChangeReason) {
	a.gap.reason = reason
	f.takeOver(a, job{kind: moving, member: to, from: a.cacher, reason: reason})
}

// endMove tells the former cacher that it is a standby. If the move has failed half-way, the account has no cacher until another one
// is assigned. The former one must know that too, because the store rejects its writes.
func (f *Fleet) endMove(a *account, j job) {
	from, hasMoved := f.members[j.from], a.cacher == j.member.id
	switch {
	case a.cacher == j.from:
		a.gap = cacherGap{} // nothing has changed
	case from != nil && a.has(from):
		f.send(from, Assignment{Account: a.name, Role: Standby})
	}
	switch j.reason {
	case ReasonSilent:
		f.endTakeover(a, from, hasMoved)
	case ReasonBalance, ReasonReturned:
		f.endBalanceMove(a, j, hasMoved)
	}
}

func (f *Fleet) endTakeover(a *account, from *member, hasMoved bool) {
	f.silent.open--
	if hasMoved {
		a.takenOverAt = f.now
		if from != nil {
			f.silent.taken[from.ID]++
		}
	}
	if f.silent.open > 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(f.silent.taken)) {
		f.log.Warn("an agent is silent, and standbys have taken over: look whether its process or its machine is frozen, or its network is interrupted", "agent", id, "accounts", f.silent.taken[id])
	}
	clear(f.silent.taken)
}
