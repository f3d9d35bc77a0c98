package roster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// seat is one account's place: the agents that may serve it, in the order in
// which they came, and the one that does.
//
// The store is asked under turn, so that an account changes hands one at a time.
// Readers need only mu, which is never held while anything is waited for: a store
// that hangs keeps nobody from learning who serves the account.
type seat struct {
	roster  *Roster
	account vedette.AccountName
	turn    chan struct{} // holds a token while somebody has the turn

	mu        sync.Mutex
	queue     []*Member
	holder    *Member
	term      vedette.Term
	owed      bool // the store has not been told that nobody holds the term any more
	doubtful  bool // the term after it may have been given too: the store has not said
	discarded bool // the account has another seat, or none
	pending   *widening
}

func (s *seat) current() (*Member, vedette.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holder, s.term
}

// unsettled reports whether fill has something to do.
func (s *seat) unsettled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holder == nil || s.pending.waits()
}

var errDiscarded = errors.New("the seat was discarded meanwhile")

func (s *seat) isDiscarded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.discarded
}

// takeTurn waits for the turn. Whoever gets it calls endTurn.
func (s *seat) takeTurn(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tryTurn takes the turn if nobody has it.
func (s *seat) tryTurn() bool {
	select {
	case s.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *seat) endTurn() { <-s.turn }

// register puts an agent at the end of the queue, unless the account is not its
// to serve. One that holds the seat already gets it anew: it has registered again
// because it starts over, or because its configuration has changed.
//
// Namespaces are those of the account's cluster. They are as many as that likes, and
// not kept for later: who takes over leaves those that are stored. The error is
// errDiscarded where the account's seat is another one by now.
func (s *seat) register(ctx context.Context, m *Member, namespaces []string) error {
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer s.endTurn()
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
	if holder, _ := s.current(); holder == nil || holder == m {
		return s.give(ctx, m, row, store.Holder{Account: &account})
	}
	s.standBy(m, row)
	return nil
}

// takeOver lets an agent of the queue have the seat, by what it registered earlier.
// It needs the turn.
func (s *seat) takeOver(ctx context.Context, m *Member) error {
	account := m.registration(s.account)
	row, err := s.admit(ctx, m, account)
	if err != nil || row == nil {
		return err
	}
	return s.give(ctx, m, row, store.Holder{Account: &account, KeepNamespaces: true})
}

// admit asks whether an agent may serve the account. The row is nil where it may
// not; it has been told so then, and holds the seat no more.
func (s *seat) admit(ctx context.Context, m *Member, account vedette.Account) (*store.AccountRow, error) {
	row, err := s.roster.registrar.Register(ctx, account)
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
func (s *seat) refuse(ctx context.Context, m *Member, reason error) {
	if m.notice(s.account) != reason.Error() {
		s.roster.log.Warn("account refused", "account", s.account, "agent", m.ID, "error", reason)
	}
	held := s.dismiss(m)
	m.tell(Assignment{Account: s.account, Role: Refused, Message: refusal(m.registration(s.account), reason), Notice: reason.Error()})
	if held {
		s.succeed(ctx)
	}
}

// refusal is what an agent may know of the reason. Whoever knows the identity of
// the cluster that has a name could register under it.
func refusal(a vedette.Account, reason error) string {
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
func (s *seat) enqueue(m *Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !m.enter(s.account) {
		return false
	}
	if !slices.Contains(s.queue, m) {
		s.queue = append(s.queue, m)
	}
	return true
}

// standBy tells an agent that another one serves the account. What it would change
// is shown, and changes nothing.
func (s *seat) standBy(m *Member, row *store.AccountRow) {
	notice := differences(row.Properties, m.registration(s.account).Properties)
	if notice != "" {
		notice = "its configuration of the account differs from what counts: " + notice
	}
	if notice != "" && notice != m.notice(s.account) {
		s.roster.log.Warn("an agent that stands by registers an account with other properties", "account", s.account, "agent", m.ID, "cacher", row.Holder, "notice", notice)
	}
	m.tell(Assignment{Account: s.account, Role: Standby, Notice: notice})
}

// give makes an agent the cacher, in a new term. It needs the turn. An agent that
// left while the store was asked is not made one; the error says so. What h lacks is
// filled in.
func (s *seat) give(ctx context.Context, m *Member, row *store.AccountRow, h store.Holder) error {
	s.empty()
	wider := s.widening(m, row)
	h.Agent, h.Server, h.Shape, h.KeepPermissions = m.ID, s.roster.server, h.Account.Shape, wider.waits()
	term, err := s.roster.book.Acquire(ctx, s.account, h)
	if err != nil {
		s.doubt(row.Term)
		return fmt.Errorf("make agent %s the cacher of %s: %w", m.ID, s.account, err)
	}
	marks, err := s.marks(ctx)
	if err != nil {
		s.owe(term)
		return err
	}
	known := m.notice(s.account)
	if !s.occupy(m, Assignment{Account: s.account, Role: Cacher, Term: term, Marks: marks, Notice: wider.notice()}, wider) {
		return fmt.Errorf("agent %s left before it became the cacher of %s", m.ID, s.account)
	}
	s.roster.log.Info("account has a cacher", "account", s.account, "agent", m.ID, "term", term)
	if !wider.waits() || wider.notice() != known {
		wider.log(s.roster.log, s.account, m.ID)
	}
	s.roster.tellSeated()
	return nil
}

func (s *seat) marks(ctx context.Context) (map[vedette.Feed]vedette.Mark, error) {
	feeds, err := s.roster.book.Marks(ctx, s.account)
	if err != nil {
		return nil, fmt.Errorf("read marks of %s: %w", s.account, err)
	}
	marks := make(map[vedette.Feed]vedette.Mark, len(feeds))
	for _, f := range feeds {
		marks[f.Feed] = f.Mark
	}
	return marks, nil
}

// empty takes the seat from its holder for as long as the store is asked to give
// it anew.
func (s *seat) empty() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holder = nil
}

// occupy seats an agent that the store has made the cacher, and tells it so,
// unless it has left.
func (s *seat) occupy(m *Member, a Assignment, pending *widening) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.queue, m) {
		s.term, s.owed, s.doubtful = a.Term, true, false
		return false
	}
	s.holder, s.term, s.owed, s.doubtful, s.pending = m, a.Term, false, false, pending
	m.tell(a)
	return true
}

// owe notes a term that the store gave and nobody holds.
func (s *seat) owe(term vedette.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term, s.owed, s.doubtful = term, true, false
}

// doubt notes that the store failed to give the term after one. It may have done so all
// the same, and the former holder of that one, if it had one, was taken the seat from.
func (s *seat) doubt(term vedette.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term, s.owed, s.doubtful = term, true, true
}

// remove takes an agent out of the queue, and gives the seat on if it was its. The
// agent is out when it returns, though ctx may end before the seat is given on.
func (s *seat) remove(ctx context.Context, m *Member) {
	if s.dismiss(m) {
		s.pass(ctx)
	}
}

// pass gives a seat on whose holder was dismissed. Where ctx ends before, fill does.
func (s *seat) pass(ctx context.Context) {
	if err := s.takeTurn(ctx); err != nil {
		return
	}
	defer s.endTurn()
	if holder, _ := s.current(); holder == nil {
		s.succeed(ctx)
	}
}

// void is remove for an agent that the store has refused.
func (s *seat) void(ctx context.Context, m *Member, term vedette.Term, reason error) {
	s.mu.Lock()
	held := s.holder == m && s.term == term
	if held {
		s.dismissLocked(m)
		m.tell(Assignment{Account: s.account, Role: Refused, Message: showable(reason)})
	}
	s.mu.Unlock()
	if held {
		s.roster.log.Warn("account taken from its cacher", "account", s.account, "agent", m.ID, "term", term, "error", reason)
		s.pass(ctx)
	}
}

// showable is what an agent may be told of an error.
func showable(err error) string {
	if vedette.KindOf(err) == "" {
		return "internal error; the server's log has the details"
	}
	return err.Error()
}

// dismiss takes an agent out of the queue and from the seat, and reports whether
// it held that.
func (s *seat) dismiss(m *Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dismissLocked(m)
}

func (s *seat) dismissLocked(m *Member) bool {
	s.queue = slices.DeleteFunc(s.queue, func(other *Member) bool { return other == m })
	if s.holder != m {
		return false
	}
	s.holder, s.owed, s.pending = nil, true, nil
	return true
}

// succeed tells the store that the holder is gone, and gives the seat to the next.
// It needs the turn.
func (s *seat) succeed(ctx context.Context) {
	if err := s.release(ctx); err != nil {
		s.roster.log.Warn("account could not be released; tried again", "account", s.account, "error", err)
	}
	s.next(ctx)
}

// release tells the store that nobody holds the account, from when on its grace
// period counts. A next cacher's term makes it needless. It needs the turn.
func (s *seat) release(ctx context.Context) error {
	s.mu.Lock()
	term, owed, doubtful := s.term, s.owed, s.doubtful
	s.mu.Unlock()
	if !owed {
		return nil
	}
	if err := s.roster.book.Release(ctx, s.account, term); err != nil {
		return err
	}
	if doubtful {
		if err := s.roster.book.Release(ctx, s.account, term+1); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owed = s.owed && s.term != term
	return nil
}

// fill gives a seat that nobody holds to the first who waits for it, and tells
// the store where that could not be told in time. While somebody has the turn
// there is nothing to do.
func (s *seat) fill(ctx context.Context) {
	if !s.tryTurn() {
		return
	}
	defer s.endTurn()
	if holder, _ := s.current(); holder != nil {
		s.widen(ctx, holder)
		return
	}
	s.next(ctx)
	if err := s.release(ctx); err != nil && ctx.Err() == nil {
		s.roster.log.Debug("account can't be released yet", "account", s.account, "error", err)
	}
	s.roster.discard(s)
}

// next gives the seat to the first in the queue that can be given it. A store that
// does not answer leaves it empty, and Run tries again. It needs the turn.
func (s *seat) next(ctx context.Context) {
	for _, m := range s.waiting() {
		if holder, _ := s.current(); holder != nil {
			return
		}
		if !slices.Contains(s.waiting(), m) {
			continue // it has left meanwhile
		}
		if err := s.takeOver(ctx, m); err != nil {
			s.roster.log.Warn("account waits for a cacher", "account", s.account, "agent", m.ID, "error", err)
		}
	}
}

func (s *seat) waiting() []*Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queue)
}
