package assignment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// slot is one account's place: the agents that may serve it, in the order in
// which they came, and the one that does.
//
// The store is asked under turn, so that an account changes hands one at a time.
// Readers need only mu, which is never held while anything is waited for: a store
// that hangs keeps nobody from learning who serves the account.
type slot struct {
	registry *Registry
	account  vedette.AccountName
	sem      chan struct{} // holds a token while somebody has the turn

	mu             sync.Mutex
	queue          []*Member
	cacher         *Member
	term           vedette.Term
	releasePending bool // the store has not been told that nobody holds the term any more
	termUncertain  bool // the term after it may have been given too: the store has not said
	discarded      bool // the account has another seat, or none
	pending        *widening
}

func (s *slot) current() (*Member, vedette.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cacher, s.term
}

// needsFill reports whether fill has something to do.
func (s *slot) needsFill() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cacher == nil || s.pending.isWaiting()
}

var errDiscarded = errors.New("the seat was discarded meanwhile")

func (s *slot) isDiscarded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.discarded
}

// lock waits for the turn. Whoever gets it calls unlock.
func (s *slot) lock(ctx context.Context) error {
	select {
	case s.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tryLock takes the turn if nobody has it.
func (s *slot) tryLock() bool {
	select {
	case s.sem <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *slot) unlock() { <-s.sem }

// register puts an agent at the end of the queue, unless the account is not its
// to serve. One that holds the seat already gets it anew: it has registered again
// because it starts over, or because its configuration has changed.
//
// Namespaces are those of the account's cluster. They are as many as that likes, and
// not kept for later: who takes over leaves those that are stored. The error is
// errDiscarded where the account's seat is another one by now.
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
		return nil // it has left
	}
	if cacher, _ := s.current(); cacher == nil || cacher == m {
		return s.assignCacher(ctx, m, row, store.Holder{Account: &account})
	}
	s.assignStandby(m, row)
	return nil
}

// takeOver lets an agent of the queue have the seat, by what it registered earlier.
// It needs the turn.
func (s *slot) takeOver(ctx context.Context, m *Member) error {
	account := m.registration(s.account)
	row, err := s.admit(ctx, m, account)
	if err != nil || row == nil {
		return err
	}
	return s.assignCacher(ctx, m, row, store.Holder{Account: &account, KeepNamespaces: true})
}

// admit asks whether an agent may serve the account. The row is nil where it may
// not; it has been told so then, and holds the seat no more.
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

// refuse takes an agent out and says why: to operators everything, to the agent
// nothing of what is stored.
func (s *slot) refuse(ctx context.Context, m *Member, reason error) {
	if m.lastNotice(s.account) != reason.Error() {
		s.registry.log.Warn("account refused", "account", s.account, "agent", m.ID, "error", reason)
	}
	wasCacher := s.removeMember(m)
	m.setAssignment(Assignment{Account: s.account, Role: Refused, Message: refusalMessage(m.registration(s.account), reason), Notice: reason.Error()})
	if wasCacher {
		s.replaceCacher(ctx)
	}
}

// refusalMessage is what an agent may know of the reason. Whoever knows the identity of
// the cluster that has a name could register under it.
func refusalMessage(a vedette.Account, reason error) string {
	if vedette.KindOf(reason) != vedette.Conflict {
		return reason.Error()
	}
	message := fmt.Sprintf("the account name %s belongs to another cluster than %s: choose another name, or stop the agents of the other until its grace period has removed it. "+
		"The server's log and its list of agents tell operators which cluster has the name", a.Name, a.Cluster)
	if a.Cluster.UID == "" {
		message += ". The agent may not read the uid of namespace kube-system, so that the cluster is known by its address and certificate only: " +
			"if one of these has changed, allow the agent to get that namespace"
	}
	return message
}

// enqueue reports whether the agent is still connected.
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

// assignStandby tells an agent that another one serves the account. What it would change
// is shown, and changes nothing.
func (s *slot) assignStandby(m *Member, row *store.AccountRow) {
	notice := describeDifferences(row.Properties, m.registration(s.account).Properties)
	if notice != "" {
		notice = "its configuration of the account differs from what counts: " + notice
	}
	if notice != "" && notice != m.lastNotice(s.account) {
		s.registry.log.Warn("an agent that stands by registers an account with other properties", "account", s.account, "agent", m.ID, "cacher", row.Holder, "notice", notice)
	}
	m.setAssignment(Assignment{Account: s.account, Role: Standby, Notice: notice})
}

// assignCacher makes an agent the cacher, in a new term. It needs the turn. An agent that
// left while the store was asked is not made one; the error says so. What h lacks is
// filled in.
func (s *slot) assignCacher(ctx context.Context, m *Member, row *store.AccountRow, h store.Holder) error {
	s.clearCacher()
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
		return fmt.Errorf("agent %s left before it became the cacher of %s", m.ID, s.account)
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
		return nil, fmt.Errorf("read marks of %s: %w", s.account, err)
	}
	marks := make(map[vedette.Feed]vedette.Mark, len(feeds))
	for _, f := range feeds {
		marks[f.Feed] = f.Mark
	}
	return marks, nil
}

// clearCacher takes the seat from its holder for as long as the store is asked to give
// it anew.
func (s *slot) clearCacher() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cacher = nil
}

// setCacher seats an agent that the store has made the cacher, and tells it so,
// unless it has left.
func (s *slot) setCacher(m *Member, a Assignment, pending *widening) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.queue, m) {
		s.term, s.releasePending, s.termUncertain = a.Term, true, false
		return false
	}
	s.cacher, s.term, s.releasePending, s.termUncertain, s.pending = m, a.Term, false, false, pending
	m.setAssignment(a)
	return true
}

// markReleasePending notes a term that the store gave and nobody holds.
func (s *slot) markReleasePending(term vedette.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term, s.releasePending, s.termUncertain = term, true, false
}

// markTermUncertain notes that the store failed to give the term after one. It may have done so all
// the same, and the former holder of that one, if it had one, was taken the seat from.
func (s *slot) markTermUncertain(term vedette.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term, s.releasePending, s.termUncertain = term, true, true
}

// remove takes an agent out of the queue, and gives the seat on if it was its. The
// agent is out when it returns, though ctx may end before the seat is given on.
func (s *slot) remove(ctx context.Context, m *Member) {
	if s.removeMember(m) {
		s.handOver(ctx)
	}
}

// handOver gives a seat on whose holder was dismissed. Where ctx ends before, fill does.
func (s *slot) handOver(ctx context.Context) {
	if err := s.lock(ctx); err != nil {
		return
	}
	defer s.unlock()
	if cacher, _ := s.current(); cacher == nil {
		s.replaceCacher(ctx)
	}
}

// revoke is remove for an agent that the store has refused.
func (s *slot) revoke(ctx context.Context, m *Member, term vedette.Term, reason error) {
	s.mu.Lock()
	wasCacher := s.cacher == m && s.term == term
	if wasCacher {
		s.removeMemberLocked(m)
		m.setAssignment(Assignment{Account: s.account, Role: Refused, Message: publicMessage(reason)})
	}
	s.mu.Unlock()
	if wasCacher {
		s.registry.log.Warn("account taken from its cacher", "account", s.account, "agent", m.ID, "term", term, "error", reason)
		s.handOver(ctx)
	}
}

// publicMessage is what an agent may be told of an error.
func publicMessage(err error) string {
	if vedette.KindOf(err) == "" {
		return "internal error; the server's log has the details"
	}
	return err.Error()
}

// removeMember takes an agent out of the queue and from the seat, and reports whether
// it held that.
func (s *slot) removeMember(m *Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeMemberLocked(m)
}

func (s *slot) removeMemberLocked(m *Member) bool {
	s.queue = slices.DeleteFunc(s.queue, func(other *Member) bool { return other == m })
	if s.cacher != m {
		return false
	}
	s.cacher, s.releasePending, s.pending = nil, true, nil
	return true
}

// replaceCacher tells the store that the holder is gone, and gives the seat to the next.
// It needs the turn.
func (s *slot) replaceCacher(ctx context.Context) {
	if err := s.release(ctx); err != nil {
		s.registry.log.Warn("account could not be released; tried again", "account", s.account, "error", err)
	}
	s.promoteNext(ctx)
}

// release tells the store that nobody holds the account, from when on its grace
// period counts. A next cacher's term makes it needless. It needs the turn.
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

// fill gives a seat that nobody holds to the first who waits for it, and tells
// the store where that could not be told in time. While somebody has the turn
// there is nothing to do.
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
		s.registry.log.Debug("account can't be released yet", "account", s.account, "error", err)
	}
	s.registry.discard(s)
}

// promoteNext gives the seat to the first in the queue that can be given it. A store that
// does not answer leaves it empty, and Run tries again. It needs the turn.
func (s *slot) promoteNext(ctx context.Context) {
	for _, m := range s.queued() {
		if cacher, _ := s.current(); cacher != nil {
			return
		}
		if !slices.Contains(s.queued(), m) {
			continue // it has left meanwhile
		}
		if err := s.takeOver(ctx, m); err != nil {
			s.registry.log.Warn("account waits for a cacher", "account", s.account, "agent", m.ID, "error", err)
		}
	}
}

func (s *slot) queued() []*Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queue)
}
