package assignment

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// Offer is what the server of a cacher says to another one: an agent of yours may have the account. That one acquires it after the
// term of the offer, or declines. Nothing is given up before: if the other server does nothing, nothing has changed, and if the account
// gets another term, the store refuses what comes late.
type Offer struct {
	Account vedette.AccountName
	Term    vedette.Term // in which the account is held
	Number  Attempt      // of the offer, for the answer
	Member  MemberID     // the agent that gets it, at the server that is asked
	From    MemberID     // the cacher, at the server that offers
	Reason  ChangeReason
	Weight  int64 // of the account
	Load    int64 // of the cacher
}

// offer is an account that is offered to an agent of another server.
type offer struct {
	Offer

	server vedette.ServerID
	until  time.Time
}

// target is an agent of another server.
type target struct {
	server vedette.ServerID
	member MemberID
}

const (
	// offerTimeout is how long another server has to acquire an account.
	offerTimeout = 3 * time.Second
	// retryOffer is after which time an account is offered again to an agent that did not take it.
	retryOffer = 2 * time.Second
)

// makeOffer offers an account to an agent of another server. The account must be at rest and have a cacher.
func (f *Fleet) makeOffer(a *account, to *remoteStandby, reason ChangeReason) {
	f.attempts++
	a.offer = &offer{Offer: Offer{Account: a.name, Term: a.term, Number: f.attempts, Member: to.Member, From: a.cacher, Reason: reason,
		Weight: a.weight, Load: f.members[a.cacher].load}, server: to.server, until: f.now.Add(offerTimeout)}
	f.offered[a] = struct{}{}
	f.emit(SendOffer{Server: to.server, Offer: a.offer.Offer})
}

// endOffer ends the offer of an account, if there is one. It was taken if the account is at the server that it was offered to.
func (f *Fleet) endOffer(a *account, now *Elsewhere) {
	o := a.offer
	if o == nil {
		return
	}
	a.offer = nil
	delete(f.offered, a)
	isTaken := now != nil && now.Server == o.server
	if !isTaken {
		if a.refusals == nil {
			a.refusals = map[target]time.Time{}
		}
		maps.DeleteFunc(a.refusals, func(_ target, until time.Time) bool { return !f.now.Before(until) })
		a.refusals[target{o.server, o.Member}] = f.now.Add(retryOffer)
	}
	switch o.Reason {
	case ReasonSilent:
		f.endTakeover(a, f.members[o.From], isTaken)
	case ReasonBalance, ReasonReturned:
		f.endRemoteMove(a, o, isTaken)
	case ReasonJoined, ReasonLeft, ReasonRejected, ReasonDrained: // nothing waits
	}
}

// Offered returns how many accounts are offered to agents of other servers.
func (f *Fleet) Offered() int { return len(f.offered) }

// hasRefused reports whether an account was offered to an agent in vain a moment ago.
func (f *Fleet) hasRefused(a *account, r *remoteStandby) bool {
	until, isRefused := a.refusals[target{r.server, r.Member}]
	return isRefused && f.now.Before(until)
}

// expireOffers ends offers that were not answered in time, and those whose server is not heard any more.
func (f *Fleet) expireOffers() {
	for _, a := range f.offersByName() {
		if p := f.peers[a.offer.server]; p == nil || !f.now.Before(a.offer.until) {
			if p != nil {
				p.balanceAfter = f.now.Add(time.Minute)
			}
			f.endOffer(a, nil)
		}
	}
}

func (f *Fleet) offersByName() (all []*account) {
	for a := range f.offered {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *account) int { return cmp.Compare(a.name, b.name) })
	return all
}

// declined ends an offer that another server does not take.
func (f *Fleet) declined(e Declined) {
	a := f.accounts[e.Account]
	if a == nil || a.offer == nil || a.offer.Number != e.Number || a.offer.server != e.Server {
		return
	}
	if p := f.peers[e.Server]; p != nil {
		p.balanceAfter = f.now.Add(f.balancer.cfg.Pause)
	}
	to := target{e.Server, a.offer.Member}
	f.endOffer(a, nil)
	if e.IsBusy {
		delete(a.refusals, to) // it is offered again soon
	}
}

// take handles an offer of another server.
func (f *Fleet) take(e Offered) {
	a, m := f.accounts[e.Account], f.members[e.Member]
	if !f.canTake(a, m, e) {
		f.emit(Decline{Server: e.Server, Account: e.Account, Number: e.Number})
		return
	}
	j := job{kind: taking, member: m, offer: &e, reason: e.Reason}
	if e.Reason == ReasonBalance {
		f.examineIncoming(a, j)
		return
	}
	f.beginTaking(a, j)
}

// canTake reports whether an agent of this server can take over an account that it stands by for. If that is meant to balance agents,
// the loads must be such that it does, now: what the other server knows of them is older.
func (f *Fleet) canTake(a *account, m *member, e Offered) bool {
	if a == nil || m == nil || f.isDraining || !a.has(m) || !a.isAtRest() || a.cacher != 0 || m.failing[a.name] || m.liveness.isSilent() {
		return false
	}
	switch e.Reason {
	case ReasonSilent:
		return m.liveness.heardTicks > 0
	case ReasonBalance:
		return f.canReceive() && f.isSettled(m) && f.balances(e, m)
	case ReasonReturned, ReasonDrained:
		return true
	case ReasonJoined, ReasonLeft, ReasonRejected:
	}
	return false
}

// balances reports whether the loads are more equal afterwards. So moves between servers end as those within one do.
func (f *Fleet) balances(e Offered, to *member) bool {
	weight, load := min(max(baseWeight, e.Weight), maxUpdateLoad), min(max(0, e.Load), maxUpdateLoad)
	return weight < load-to.load && (load-to.load)*100 > (load+to.load)*stopPercent
}

func (f *Fleet) beginTaking(a *account, j job) {
	a.gap.reason = j.reason
	f.takeOver(a, j)
}

// isOffered reports whether an agent gets an account that another server holds, because that server has offered it.
func (j *job) isOffered() bool {
	e := j.stored.Elsewhere
	return j.offer != nil && e != nil && e.Server == j.offer.Server && e.Term == j.offer.Term
}

// endTaking declines an offer that could not be taken. Other servers are told that it was.
func (f *Fleet) endTaking(a *account, j job) {
	hasTaken := a.cacher == j.member.id
	if !hasTaken {
		a.gap = cacherGap{}
		f.emit(Decline{Server: j.offer.Server, Account: a.name, Number: j.offer.Number})
	}
	switch {
	case j.reason == ReasonBalance:
		f.endIncoming(a, j, hasTaken)
	case !hasTaken:
	case j.reason == ReasonSilent:
		a.takenOverAt = f.now
	case j.reason == ReasonReturned:
		a.stayUntil = f.now.Add(stayAfterFail)
	}
}

// drain makes the fleet give its accounts to agents of other servers, and take none of theirs.
func (f *Fleet) drain() {
	f.isDraining = true
	f.emit(SendUpdate{})
	f.offerAll()
}

// offerAll offers the accounts of a fleet that drains to agents elsewhere. Other accounts follow when its own agents leave.
func (f *Fleet) offerAll() {
	if !f.isDraining {
		return
	}
	for _, a := range f.sortedAccounts() {
		if a.cacher == 0 || a.offer != nil || !a.isAtRest() {
			continue
		}
		for _, r := range f.remoteStandbys(a) {
			if !f.hasRefused(a, &r) && r.canReplace(f.members[a.cacher], a.name) {
				f.makeOffer(a, &r, ReasonDrained)
				break
			}
		}
	}
}
