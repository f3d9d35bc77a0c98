package assignment

import (
	"fmt"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// Phase is what happens to an account.
type Phase string

// The phases. In Vacant and Held, an account is at rest; in the others, it waits for an answer.
const (
	Vacant    Phase = "vacant"    // it has no cacher
	Held      Phase = "held"      // it has one
	Admitting Phase = "admitting" // the store is asked whether an agent may report it
	Acquiring Phase = "acquiring" // the store is asked for a new term
	Releasing Phase = "releasing" // the store is told that nobody has it
	Changing  Phase = "changing"  // an operator replaces or removes it
)

// account is an account and the agents that may report it. One thing happens to it at a time: what comes meanwhile
// waits.
type account struct {
	name       vedette.AccountName
	candidates []*member // agents that may report it, in the order in which they registered
	cacher     MemberID
	term       vedette.Term
	unreleased bool       // the store does not know yet that no agent holds the term
	uncertain  bool       // the next term may also be assigned, because the store did not answer
	source     string     // of the agent for which the store was last asked for a term
	elsewhere  *Elsewhere // the cacher, if it is connected to another server; then cacher is 0

	releasedTerm  vedette.Term         // in which the store knows that nobody has it; 0 if this server did not release it
	deferredUntil time.Time            // up to when it is left to agents of other servers; zero if somebody has it
	offer         *offer               // of the account to an agent of another server
	refusals      map[target]time.Time // until when it is not offered to agents again
	isLooking     bool                 // the store is asked who has it
	sent          AccountUpdate        // to other servers

	open     Attempt // what the store, or an operator's change, has not answered yet; 0 at rest
	phase    Phase   // while an attempt is open
	job      job     // to which the attempt belongs
	handover bool    // the cacher has left: release the account, and promote the next one
	waiting  []job   // registrations and changes
	awaiting []Request

	increase    *permissionIncrease // of the cacher; nil for none
	weight      int64               // in objects; part of the load of one member
	carrier     *member             // whose load that is: the cacher's, or that of the agent that is about to become it
	gap         cacherGap
	assignedAt  time.Time // when the cacher was assigned
	completeAt  time.Time // up to when it was complete before the cacher's term, or else since when it is registered
	stayUntil   time.Time // the account is not moved to balance agents before
	takenOverAt time.Time // when a standby last took over from a silent cacher
}

// job is what an account is busy with, or will be.
type job struct {
	kind       jobKind
	member     *member         // that is to get a role
	registered vedette.Account // by the member; with namespaces only in a registration
	prepared   *Prepared       // its properties
	request    Request         // to reply to; 0 for none
	isFirst    bool            // of a registration: the member registers the account for the first time
	stored     StoredAccount   // once the member is admitted
	increase   *permissionIncrease
	others     []*member    // of a promotion: to try afterwards
	from       MemberID     // of a move
	offer      *Offered     // that is taken
	reason     ChangeReason // of a move, or of an offer
	change     Change
	// Of a release: whether the next agent is promoted afterwards. Of a promotion: whether the account is released if it fails.
	goesOn bool
}

type jobKind string

const (
	registration   jobKind = "registration"
	promotion      jobKind = "promotion"
	moving         jobKind = "move"
	taking         jobKind = "offer"
	increasing     jobKind = "permission increase"
	release        jobKind = "release"
	operatorChange jobKind = "change"
)

// Phase returns the phase of an account; Vacant if no agent has registered it.
func (f *Fleet) Phase(name vedette.AccountName) Phase {
	if a := f.accounts[name]; a != nil {
		return a.currentPhase()
	}
	return Vacant
}

func (a *account) currentPhase() Phase {
	switch {
	case a.open != 0:
		return a.phase
	case a.cacher != 0:
		return Held
	}
	return Vacant
}

func (a *account) isAtRest() bool { return a.open == 0 }

func (a *account) has(m *member) bool { return slices.Contains(a.candidates, m) }

func (f *Fleet) accountOf(name vedette.AccountName) *account {
	a := f.accounts[name]
	if a == nil {
		a = &account{name: name, weight: baseWeight}
		f.accounts[name] = a
	}
	return a
}

// answered returns the account of which an answer ends the open attempt; nil if the answer comes late.
func (f *Fleet) answered(name vedette.AccountName, attempt Attempt, phase Phase) *account {
	a := f.accounts[name]
	if a == nil || a.open == 0 || a.open != attempt || a.phase != phase {
		return nil
	}
	a.open = 0
	return a
}

func (f *Fleet) begin(a *account, phase Phase, j job) Attempt {
	f.attempts++
	a.open = f.attempts
	a.phase = phase
	a.job = j
	return a.open
}

// proceed begins what an account at rest has to do.
func (f *Fleet) proceed(a *account) {
	f.touch(a)
	for a.isAtRest() {
		switch {
		case a.handover && a.cacher == 0:
			a.handover = false
			f.release(a, true)
		case len(a.waiting) > 0:
			next := a.waiting[0]
			a.waiting = slices.Delete(a.waiting, 0, 1)
			f.start(a, next)
		default:
			f.rest(a)
			return
		}
	}
}

// start begins what has waited.
func (f *Fleet) start(a *account, j job) {
	if j.kind == operatorChange {
		f.startChange(a, j)
		return
	}
	attempt := f.begin(a, Admitting, j)
	f.emit(Admit{Account: j.registered, Attempt: attempt, Source: j.member.Source})
}

// rest tells those who wait for it that an account is at rest.
func (f *Fleet) rest(a *account) {
	a.handover = false
	for _, id := range a.awaiting {
		f.reply(id, nil)
	}
	a.awaiting = nil
}

// forget forgets an account that no agent uses, so that names that were registered once take no memory.
func (f *Fleet) forget(a *account) {
	if a.isAtRest() && a.cacher == 0 && len(a.candidates) == 0 && !a.unreleased {
		delete(f.accounts, a.name)
		f.endDeferral(a)
	}
}

// retry does what the store could not do earlier.
func (f *Fleet) retry(a *account) {
	switch {
	case !a.isAtRest():
	case a.cacher != 0:
		f.retryIncrease(a)
	case a.elsewhere != nil:
	case len(a.candidates) > 0:
		f.promote(a, true)
	default:
		f.release(a, false)
	}
	f.proceed(a)
	f.forget(a)
}

// register queues the registration of an account.
func (f *Fleet) register(e Registered) {
	m := f.members[e.Member]
	if m == nil {
		f.replyNow(e.Request, errLeft)
		return
	}
	name, kept := e.Account.Name, e.Account
	kept.Namespaces = nil
	_, again := m.registered[name]
	m.registered[name] = registered{kept, e.Prepared, likenessOf(kept.Shape, e.Prepared)}
	a := f.accountOf(name)
	f.expect(e.Request)
	a.waiting = append(a.waiting, job{kind: registration, member: m, registered: e.Account, prepared: e.Prepared, request: e.Request,
		isFirst: !again})
	f.proceed(a)
}

// isWanted reports whether an agent that was asked about is still there, and still wants the account.
func (f *Fleet) isWanted(a *account, m *member) bool {
	_, registered := m.registered[a.name]
	return registered && f.members[m.id] == m
}

func (f *Fleet) admitted(e Admitted) {
	a := f.answered(e.Account, e.Attempt, Admitting)
	if a == nil {
		return
	}
	j := a.job
	j.stored = e.Stored
	isRegistration := j.kind == registration
	switch {
	case !f.isWanted(a, j.member) || !isRegistration && !a.has(j.member):
		f.end(a, j, errLeft)
	case isRefusal(e.Err):
		f.refuse(a, j.member, e.Err)
		f.end(a, j, nil)
	case e.Err != nil:
		if !isRegistration {
			f.countFailure(a)
		}
		f.end(a, j, e.Err)
	case j.stored.Elsewhere != nil && !j.comesBack() && !j.isOffered():
		f.standBy(a, j)
	default:
		f.addCandidate(a, j.member)
		former := f.members[a.cacher]
		switch {
		case !isRegistration || a.cacher == 0 || former == j.member:
		case j.member.succeeds(former):
			f.send(former, Assignment{Account: a.name, Role: Standby})
		default:
			f.makeStandby(a, j)
			f.end(a, j, nil)
			return
		}
		f.acquire(a, j)
	}
}

// addCandidate adds an agent. It is shown as a standby until it has a role.
func (f *Fleet) addCandidate(a *account, m *member) {
	if !a.has(m) {
		a.candidates = append(a.candidates, m)
	}
	if _, known := m.roles[a.name]; !known {
		m.roles[a.name] = Assignment{Account: a.name, Role: Standby}
	}
}

// makeStandby makes an agent a standby. Properties in which its registration differs are shown to
// operators and have no effect.
func (f *Fleet) makeStandby(a *account, j job) {
	notice := describeDifferences(j.stored, j)
	if notice != "" {
		notice = "its account properties differ from those in effect: " + notice
	}
	if notice != "" && notice != j.member.lastNotice(a.name) {
		f.log.Warn("standby registers other account properties", "account", a.name, "agent", j.member.ID, "cacher", j.stored.Holder,
			"notice", notice)
	}
	f.send(j.member, Assignment{Account: a.name, Role: Standby, Notice: notice})
}

// acquire asks for a new term for an agent that is admitted. Meanwhile the account has no cacher.
func (f *Fleet) acquire(a *account, j job) {
	j.increase = f.checkIncrease(a, j)
	if a.cacher != 0 {
		a.gap.former = a.cacher
	}
	f.endOffer(a, nil)
	a.cacher, a.elsewhere = 0, nil // whoever has it loses it, or this is overtaken
	a.releasedTerm = 0
	f.carry(a, j.member)
	a.source = j.member.Source
	attempt := f.begin(a, Acquiring, j)
	f.emit(Acquire{Account: j.registered, Attempt: attempt, Agent: j.member.ID, Source: a.source, KeepNamespaces: j.kind != registration,
		KeepPermissions: j.increase.isWaiting(), After: j.stored.Term})
}

func (f *Fleet) acquired(e Acquired) {
	a := f.answered(e.Account, e.Attempt, Acquiring)
	if a == nil {
		return
	}
	j, m := a.job, a.job.member
	err := e.Err
	switch {
	case e.IsOvertaken && a.has(m):
		attempt := f.begin(a, Admitting, j)
		f.emit(Admit{Account: j.registered, Attempt: attempt, Source: m.Source})
		return
	case e.IsOvertaken:
		err = errLeft
	case err != nil && e.Term == 0:
		a.term = j.stored.Term
		a.unreleased = true
		a.uncertain = true
	case err != nil:
		a.term = e.Term
		a.unreleased = true
		a.uncertain = false
	case !a.has(m):
		a.term = e.Term
		a.unreleased = true
		a.uncertain = false
		err = errLeft
	}
	if err != nil {
		f.carry(a, nil)
		f.countFailure(a)
		a.handover = a.handover || !a.has(m) // it is gone, so nobody else would promote the next one
		f.end(a, j, fmt.Errorf("make agent %s the cacher of %s: %w", m.ID, a.name, err))
		return
	}
	f.countChange(a, m)
	a.cacher = m.id
	a.term = e.Term
	a.unreleased = false
	a.uncertain = false
	a.increase = j.increase
	f.endDeferral(a)
	a.assignedAt = f.now
	a.handover, a.completeAt = false, e.CompleteAt
	if a.completeAt.IsZero() {
		a.completeAt = j.stored.Registered
	}
	previousNotice := m.lastNotice(a.name)
	f.send(m, Assignment{Account: a.name, Role: Cacher, Term: e.Term, Marks: e.Marks, Notice: j.increase.notice()})
	f.log.Info("account has a cacher", "account", a.name, "agent", m.ID, "term", e.Term)
	if !j.increase.isWaiting() || j.increase.notice() != previousNotice {
		f.logIncrease(a, m, j.increase)
	}
	f.emit(NotifyAssigned{a.name})
	f.end(a, j, nil)
}

// end ends a job, and begins the next one.
func (f *Fleet) end(a *account, j job, err error) {
	f.reply(j.request, err)
	switch j.kind {
	case moving:
		f.logFailure(a, j, err)
		f.endMove(a, j)
	case taking:
		f.logFailure(a, j, err)
		f.endTaking(a, j)
	case promotion:
		f.logFailure(a, j, err)
		if a.cacher == 0 && a.elsewhere == nil {
			f.promoteNext(a, j.others, j.goesOn)
		}
	case increasing:
		if err != nil {
			f.log.Warn("retrying to widen permissions", "account", a.name, "agent", j.member.ID, "error", err)
		}
	case registration, release, operatorChange: // the caller is told
	}
	f.proceed(a)
	if j.kind == operatorChange {
		f.forget(a) // the name may be invented
	}
}

func (f *Fleet) logFailure(a *account, j job, err error) {
	if err != nil {
		f.log.Warn("retrying to assign cacher", "account", a.name, "agent", j.member.ID, "error", err)
	}
}

// promote makes the first agent the cacher that the store accepts, in the order of byLoad. If the store does not answer, the
// account stays vacant, and is tried again later.
func (f *Fleet) promote(a *account, releases bool) {
	wasHere := a.unreleased || a.releasedTerm != 0
	if (releases || !a.unreleased) && f.leavesToOthers(a, wasHere) {
		f.promoteNext(a, nil, releases)
		return
	}
	f.promoteNext(a, f.byLoad(a.candidates), releases)
}

func (f *Fleet) promoteNext(a *account, others []*member, releases bool) {
	for i, m := range others {
		if a.has(m) { // it has not left
			f.carry(a, m)
			f.takeOver(a, job{kind: promotion, member: m, others: others[i+1:], goesOn: releases})
			return
		}
	}
	f.carry(a, nil)
	if releases {
		f.release(a, false)
	}
}

// takeOver admits an agent again, with the account as it registered it earlier, to make it the cacher.
func (f *Fleet) takeOver(a *account, j job) {
	r := j.member.registered[a.name]
	j.registered, j.prepared = r.Account, r.prepared
	attempt := f.begin(a, Admitting, j)
	f.emit(Admit{Account: j.registered, Attempt: attempt, Source: j.member.Source})
}

// release records that no agent holds the account. It is not needed if a next cacher has been assigned.
func (f *Fleet) release(a *account, promotes bool) {
	switch {
	case a.unreleased:
		terms := []vedette.Term{a.term}
		if a.uncertain {
			terms = append(terms, a.term+1)
		}
		attempt := f.begin(a, Releasing, job{kind: release, goesOn: promotes})
		f.emit(Release{Account: a.name, Attempt: attempt, Terms: terms, Source: a.source})
	case promotes:
		f.promote(a, false)
	}
}

func (f *Fleet) released(e Released) {
	a := f.answered(e.Account, e.Attempt, Releasing)
	if a == nil {
		return
	}
	j := a.job
	if e.Err != nil {
		if j.goesOn {
			f.log.Warn("retrying to release account", "account", a.name, "error", e.Err)
		} else { // it is tried each second
			f.log.Debug("retrying to release account", "account", a.name, "error", e.Err)
		}
	} else {
		a.releasedTerm = a.term
		if a.uncertain {
			a.releasedTerm++
		}
		a.unreleased, a.uncertain = false, false
	}
	if j.goesOn {
		f.promote(a, false)
	}
	f.proceed(a)
}

// carry adds the weight of an account to the load of an agent, nil for none, in place of the former one's.
func (f *Fleet) carry(a *account, m *member) {
	if a.carrier != nil {
		a.carrier.load -= a.weight
	}
	if m != nil {
		m.load += a.weight
	}
	a.carrier = m
}

func (f *Fleet) setWeight(a *account, weight int64) {
	if a.carrier != nil {
		a.carrier.load += weight - a.weight
	}
	a.weight = weight
}
