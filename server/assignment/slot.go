package assignment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// slot holds the agents of one account in the order in which they registered, and which of them is
// the cacher.
//
// The store is called only by the holder of sem, so that changes of the cacher happen one at a
// time. Readers need only mu. It is never held while waiting, so a store that hangs does not block
// readers.
type slot struct {
	registry *Registry
	account  vedette.AccountName
	sem      chan struct{} // holds a token while the slot is locked

	mu             sync.Mutex
	queue          []*Member
	cacher         *Member
	term           vedette.Term
	releasePending bool // the store does not know yet that no agent holds the term
	termUncertain  bool // the next term may also be assigned; the store did not answer
	discarded      bool // the account has another slot, or none
	pending        *widening
	weight         int64     // of the account, in objects; part of the load of the cacher
	assignedAt     time.Time // when the cacher was assigned
	stayUntil      time.Time // the Balancer does not move the account before
	takenOverAt    time.Time // when a standby last took over from a silent cacher
	vacancy        vacancy
}

func (s *slot) current() (*Member, vedette.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cacher, s.term
}

// needsFill reports whether fill has work to do.
func (s *slot) needsFill() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cacher == nil || s.pending.isWaiting()
}

var errDiscarded = errors.New("the slot was discarded concurrently")

func (s *slot) isDiscarded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.discarded
}

// lock locks the slot. It fails if ctx ends first.
func (s *slot) lock(ctx context.Context) error {
	select {
	case s.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tryLock locks the slot if it is not locked.
func (s *slot) tryLock() bool {
	select {
	case s.sem <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *slot) unlock() { <-s.sem }

// register adds an agent to the end of the queue, unless it may not serve the account. An agent
// that is the cacher already is assigned again, because it restarted or its configuration changed.
//
// namespaces are the namespaces of the account's cluster. They are stored now and not kept in
// memory, because there may be very many. An agent that takes over later uses the stored ones. The
// error is errDiscarded if the account has another slot by now.
func (s *slot) register(ctx context.Context, m *Member, namespaces []string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	if s.isDiscarded() {
		return errDiscarded
	}
	account := m.registration(s.account)
	account.Namespaces = namespaces
	row, err := s.admit(ctx, m, account)
	if err != nil || row == nil {
		return err
	}
	if !s.enqueue(m) {
		return nil // the agent has left
	}
	if cacher, _ := s.current(); cacher == nil || cacher == m {
		return s.assignCacher(ctx, m, row, store.Holder{Account: &account})
	}
	s.assignStandby(m, row)
	return nil
}

// takeOver makes an agent of the queue the cacher, with the account as it registered it earlier.
// The caller must hold the lock.
func (s *slot) takeOver(ctx context.Context, m *Member) error {
	account := m.registration(s.account)
	row, err := s.admit(ctx, m, account)
	if err != nil {
		s.countFailure()
	}
	if err != nil || row == nil {
		return err
	}
	return s.assignCacher(ctx, m, row, store.Holder{Account: &account, KeepNamespaces: true})
}

// admit checks whether an agent may serve the account. If it may not, admit refuses it and returns
// a nil row.
func (s *slot) admit(ctx context.Context, m *Member, account vedette.Account) (*store.AccountRow, error) {
	row, err := s.registry.registrar.Register(ctx, account)
	switch vedette.KindOf(err) {
	case vedette.Invalid, vedette.Conflict, vedette.Denied:
		s.refuse(ctx, m, err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &row, nil
}

// refuse removes an agent and reports the reason: all of it to operators, but nothing about stored
// accounts to the agent.
func (s *slot) refuse(ctx context.Context, m *Member, reason error) {
	if m.lastNotice(s.account) != reason.Error() {
		s.registry.log.Warn("account refused", "account", s.account, "agent", m.ID, "error", reason)
	}
	wasCacher := s.removeMember(m, Rejected)
	registered := m.registration(s.account)
	refusal := Assignment{Account: s.account, Role: Refused, Message: refusalMessage(registered, reason), Notice: reason.Error()}
	if vedette.KindOf(reason) == vedette.Conflict {
		refusal.Conflict = &registered.Cluster
	}
	m.setAssignment(refusal)
	if wasCacher {
		s.replaceCacher(ctx)
	}
}

// refusalMessage returns the reason that the agent gets. It does not name the other cluster,
// because anyone who knows the identity of a cluster could register under it.
func refusalMessage(a vedette.Account, reason error) string {
	if vedette.KindOf(reason) != vedette.Conflict {
		return reason.Error()
	}
	message := fmt.Sprintf("the account name %[1]s belongs to another cluster than %[2]s: choose another name, or let an operator of the server give this name to your cluster "+
		"with `vedette accounts accept %[1]s`. The server's log and its list of agents show which cluster has the name", a.Name, a.Cluster)
	if a.Cluster.UID == "" {
		message += ". The agent may not read the uid of namespace kube-system, so the cluster is identified by its address and certificate only: " +
			"if one of these changed, allow the agent to get that namespace"
	}
	return message
}

// enqueue adds an agent to the queue and reports whether the agent is still connected.
func (s *slot) enqueue(m *Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !m.setStandby(s.account) {
		return false
	}
	if !slices.Contains(s.queue, m) {
		s.queue = append(s.queue, m)
	}
	return true
}

// assignStandby makes an agent a standby. Properties in which its registration differs are shown to
// operators and have no effect.
func (s *slot) assignStandby(m *Member, row *store.AccountRow) {
	notice := describeDifferences(row.Properties, m.registration(s.account).Properties)
	if notice != "" {
		notice = "its account properties differ from those in effect: " + notice
	}
	if notice != "" && notice != m.lastNotice(s.account) {
		s.registry.log.Warn("standby registers other account properties", "account", s.account, "agent", m.ID, "cacher", row.Holder, "notice",
			notice)
	}
	m.setAssignment(Assignment{Account: s.account, Role: Standby, Notice: notice})
}

// assignCacher makes an agent the cacher in a new term, and fills in the rest of h. The caller must
// hold the lock. An agent that left while the store was asked does not become the cacher, and
// assignCacher fails.
func (s *slot) assignCacher(ctx context.Context, m *Member, row *store.AccountRow, h store.Holder) (err error) {
	s.clearCacher()
	defer func() {
		if err != nil {
			s.countFailure()
		}
	}()
	change := s.checkWidening(m, row)
	h.Agent, h.Server, h.Shape, h.KeepPermissions = m.ID, s.registry.server, h.Account.Shape, change.isWaiting()
	term, err := s.registry.store.Acquire(ctx, s.account, h)
	if err != nil {
		s.markTermUncertain(row.Term)
		return fmt.Errorf("make agent %s the cacher of %s: %w", m.ID, s.account, err)
	}
	marks, err := s.marks(ctx)
	if err != nil {
		s.markReleasePending(term)
		return err
	}
	previousNotice := m.lastNotice(s.account)
	if !s.setCacher(m, Assignment{Account: s.account, Role: Cacher, Term: term, Marks: marks, Notice: change.notice()}, change) {
		return fmt.Errorf("make agent %s the cacher of %s: the agent has left", m.ID, s.account)
	}
	s.registry.log.Info("account has a cacher", "account", s.account, "agent", m.ID, "term", term)
	if !change.isWaiting() || change.notice() != previousNotice {
		change.log(s.registry.log, s.account, m.ID)
	}
	s.registry.notifyAssigned()
	return nil
}

func (s *slot) marks(ctx context.Context) (map[vedette.Feed]vedette.Mark, error) {
	feeds, err := s.registry.store.Marks(ctx, s.account)
	if err != nil {
		return nil, fmt.Errorf("read the marks of %s: %w", s.account, err)
	}
	marks := make(map[vedette.Feed]vedette.Mark, len(feeds))
	for _, f := range feeds {
		marks[f.Feed] = f.Mark
	}
	return marks, nil
}

// clearCacher leaves the slot without a cacher while the store is asked for a new term.
func (s *slot) clearCacher() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cacher != nil {
		s.vacancy.former = s.cacher
	}
	s.replaceCacherLocked(nil)
}

// replaceCacherLocked sets the cacher, or nil for none, and updates the loads.
func (s *slot) replaceCacherLocked(m *Member) {
	if s.cacher != nil {
		s.cacher.load.Add(-s.weight)
	}
	if m != nil {
		m.load.Add(s.weight)
	}
	s.cacher = m
}

func (s *slot) setWeight(weight int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cacher != nil {
		s.cacher.load.Add(weight - s.weight)
	}
	s.weight = weight
}

// stay keeps the Balancer from moving the account for some time.
func (s *slot) stay(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stayUntil = until
}

// move makes a standby the cacher, and the cacher a standby. It reports false if another change of
// the account is under way, or if one of the agents has left or was refused.
func (s *slot) move(ctx context.Context, from, to *Member, reason ChangeReason) bool {
	if !s.tryLock() {
		return false
	}
	defer s.unlock()
	if cacher, _ := s.current(); cacher != from || !slices.Contains(s.queued(), to) {
		return false
	}
	s.beginMove(reason)
	if err := s.takeOver(ctx, to); err != nil {
		s.registry.log.Warn("retrying to assign cacher", "account", s.account, "agent", to.ID, "error", err)
		if !slices.Contains(s.queued(), to) { // it has left without being the cacher, so nobody else would promote the next one
			s.promoteNext(ctx)
		}
	}
	return s.finishMove(from, to)
}

// finishMove tells the former cacher that it is a standby, and reports whether the account has moved.
// If the move has failed half-way, the account may have no cacher until fill assigns one. The former
// one must know that too, because the store rejects its writes.
func (s *slot) finishMove(from, to *Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cacher == from {
		s.vacancy = vacancy{} // nothing has changed
	} else if slices.Contains(s.queue, from) {
		from.setAssignment(Assignment{Account: s.account, Role: Standby})
	}
	return s.cacher == to
}

// setCacher makes an agent the cacher, as the store has done already, and sends it the assignment.
// It reports false if the agent has left.
func (s *slot) setCacher(m *Member, a Assignment, pending *widening) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.queue, m) {
		s.term, s.releasePending, s.termUncertain = a.Term, true, false
		return false
	}
	s.replaceCacherLocked(m)
	s.countChangeLocked(m)
	s.assignedAt = time.Now()
	s.term, s.releasePending, s.termUncertain, s.pending = a.Term, false, false, pending
	m.setAssignment(a)
	return true
}

// markReleasePending records a term that the store assigned and no agent holds.
func (s *slot) markReleasePending(term vedette.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term, s.releasePending, s.termUncertain = term, true, false
}

// markTermUncertain records that assigning the term after the given one failed. The store may have
// assigned it all the same, so that the given term may no longer be valid.
func (s *slot) markTermUncertain(term vedette.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term, s.releasePending, s.termUncertain = term, true, true
}

// remove removes an agent from the queue, and hands the slot over if the agent was the cacher. The
// agent is removed when remove returns, even if ctx ends before the handover.
func (s *slot) remove(ctx context.Context, m *Member) {
	if s.removeMember(m, Left) {
		s.handOver(ctx)
	}
}

// handOver assigns a slot whose cacher was removed. If ctx ends before, fill does it later.
func (s *slot) handOver(ctx context.Context) {
	if err := s.lock(ctx); err != nil {
		return
	}
	defer s.unlock()
	if cacher, _ := s.current(); cacher == nil {
		s.replaceCacher(ctx)
	}
}

// revoke removes an agent whose writes the store rejects.
func (s *slot) revoke(ctx context.Context, m *Member, term vedette.Term, reason error) {
	s.mu.Lock()
	wasCacher := s.cacher == m && s.term == term
	if wasCacher {
		s.removeMemberLocked(m, Rejected)
		m.setAssignment(Assignment{Account: s.account, Role: Refused, Message: publicMessage(reason)})
	}
	s.mu.Unlock()
	if wasCacher {
		s.registry.log.Warn("cacher revoked", "account", s.account, "agent", m.ID, "term", term, "error", reason)
		s.handOver(ctx)
	}
}

// publicMessage returns the text of an error that may be shown to agents.
func publicMessage(err error) string {
	if vedette.KindOf(err) == "" {
		return "internal error: see the server's log"
	}
	return err.Error()
}

// removeMember removes an agent from the queue, and reports whether it was the cacher.
func (s *slot) removeMember(m *Member, reason ChangeReason) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeMemberLocked(m, reason)
}

func (s *slot) removeMemberLocked(m *Member, reason ChangeReason) bool {
	s.queue = slices.DeleteFunc(s.queue, func(other *Member) bool { return other == m })
	s.vacateLocked(m, reason)
	if s.cacher != m {
		return false
	}
	s.replaceCacherLocked(nil)
	s.releasePending, s.pending = true, nil
	return true
}

// replaceCacher releases the account in the store and assigns the next agent. The caller must hold
// the lock.
func (s *slot) replaceCacher(ctx context.Context) {
	if err := s.release(ctx); err != nil {
		s.registry.log.Warn("retrying to release account", "account", s.account, "error", err)
	}
	s.promoteNext(ctx)
}

// release records in the store that no agent holds the account, which starts its grace period. It
// is not needed if a next cacher has been assigned. The caller must hold the lock.
func (s *slot) release(ctx context.Context) error {
	s.mu.Lock()
	term, releasePending, termUncertain := s.term, s.releasePending, s.termUncertain
	s.mu.Unlock()
	if !releasePending {
		return nil
	}
	if err := s.registry.store.Release(ctx, s.account, term); err != nil {
		return err
	}
	if termUncertain {
		if err := s.registry.store.Release(ctx, s.account, term+1); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releasePending = s.releasePending && s.term != term
	return nil
}

// fill assigns an empty slot to an agent of the queue, and completes a release that failed
// earlier. It does nothing while the slot is locked.
func (s *slot) fill(ctx context.Context) {
	if !s.tryLock() {
		return
	}
	defer s.unlock()
	if cacher, _ := s.current(); cacher != nil {
		s.widen(ctx, cacher)
		return
	}
	s.promoteNext(ctx)
	if err := s.release(ctx); err != nil && ctx.Err() == nil {
		s.registry.log.Debug("retrying to release account", "account", s.account, "error", err)
	}
	s.registry.discard(s)
}

// promoteNext assigns the slot to the first agent that the store accepts, in the order of byLoad. If the store
// does not answer, the slot stays empty and Run tries again. The caller must hold the lock.
func (s *slot) promoteNext(ctx context.Context) {
	for _, m := range byLoad(s.queued()) {
		if cacher, _ := s.current(); cacher != nil {
			return
		}
		if !slices.Contains(s.queued(), m) {
			continue // the agent has left
		}
		if err := s.takeOver(ctx, m); err != nil {
			s.registry.log.Warn("retrying to assign cacher", "account", s.account, "agent", m.ID, "error", err)
		}
	}
}

func (s *slot) queued() []*Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queue)
}
