package assignment

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// remoteStandby is an agent of another server that could report an account.
type remoteStandby struct {
	*remoteAgent

	standby StandbyUpdate
}

// remoteStandbys returns the agents of other servers that could report an account, in the order of their load. Those are left out
// whose server was not heard or takes no accounts, that are silent, and that report an error of the account.
func (f *Fleet) remoteStandbys(a *account) (all []remoteStandby) {
	for _, p := range f.peers {
		if p.isDraining || f.now.Sub(p.heardAt) >= PeerTimeout {
			continue
		}
		for _, s := range p.accounts[a.name].Standbys {
			if r := p.agents[s.Member]; r != nil && !r.IsSilent && !s.IsFailing {
				all = append(all, remoteStandby{r, s})
			}
		}
	}
	slices.SortFunc(all, func(x, y remoteStandby) int {
		return cmp.Or(cmp.Compare(x.Load, y.Load), cmp.Compare(x.server, y.server), cmp.Compare(x.Member, y.Member))
	})
	return all
}

// hasRemote reports whether an agent of another server could report an account.
func (f *Fleet) hasRemote(a *account) bool {
	for _, p := range f.peers {
		if len(p.accounts[a.name].Standbys) > 0 {
			return true
		}
	}
	return false
}

// findRemote returns an agent of another server that could still report an account; nil if there is none.
func (f *Fleet) findRemote(a *account, server vedette.ServerID, id MemberID) *remoteStandby {
	for _, r := range f.remoteStandbys(a) {
		if r.server == server && r.Member == id {
			return &r
		}
	}
	return nil
}

// canReplace is as that of a member.
func (r *remoteStandby) canReplace(from *member, name vedette.AccountName) bool {
	return r.ZoneID == from.ZoneID && r.standby.Likeness == from.registered[name].likeness
}

func (r *remoteAgent) wasHeardFor(d time.Duration, now time.Time) bool {
	return r.Heard > 0 && now.Sub(r.heardSince) >= d
}

func (r *remoteAgent) isSettled(settle time.Duration, now time.Time) bool {
	return now.Sub(r.settledSince) >= settle
}

// deferral is how long a server leaves an account that nobody has to an agent of another server that has less to do.
const deferral = 300 * time.Millisecond

// leavesToOthers reports whether an account that nobody has is left, for a moment, to an agent of another server. All servers that have
// a standby learn of it at the same time, and only one of them need ask the store. An agent of this server takes over unless
// another one has much less to do, because it is faster; agents elsewhere are asked in the order of their load.
func (f *Fleet) leavesToOthers(a *account, wasHere bool) bool {
	if !f.isShared || !a.deferredUntil.IsZero() && !f.now.Before(a.deferredUntil) {
		return false
	}
	if !f.isBetterElsewhere(a, wasHere) {
		return false
	}
	if a.deferredUntil.IsZero() {
		a.deferredUntil = f.now.Add(deferral)
		f.deferred[a] = struct{}{}
	}
	return true
}

func (f *Fleet) isBetterElsewhere(a *account, wasHere bool) bool {
	others := f.remoteStandbys(a)
	if len(others) == 0 {
		return false
	}
	if f.isDraining {
		return true
	}
	best := f.byLoad(a.candidates)
	if len(best) == 0 || best[0].liveness.isSilent() {
		return true
	}
	own := best[0]
	i := slices.IndexFunc(others, func(r remoteStandby) bool { return r.ZoneID == own.ZoneID })
	if i < 0 {
		return false
	}
	other := others[i]
	if wasHere {
		return (own.load-other.Load)*100 > (own.load+other.Load)*startPercent
	}
	return cmp.Or(cmp.Compare(other.Load, own.load), cmp.Compare(other.server, f.server)) < 0
}

// endDeferrals lets agents of this server take over accounts that no other one has taken.
func (f *Fleet) endDeferrals() {
	for _, a := range slices.SortedFunc(maps.Keys(f.deferred), func(a, b *account) int { return cmp.Compare(a.name, b.name) }) {
		if f.now.Before(a.deferredUntil) {
			continue
		}
		delete(f.deferred, a)
		if a.isAtRest() && a.cacher == 0 && a.elsewhere == nil && f.accounts[a.name] == a {
			f.retry(a)
		}
	}
}

// endDeferral forgets that an account was left to others, because somebody has it.
func (f *Fleet) endDeferral(a *account) {
	a.deferredUntil = time.Time{}
	delete(f.deferred, a)
}
