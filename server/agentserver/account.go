package agentserver

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/wire"
)

// sessionAccounts are the accounts of a session's agent.
type sessionAccounts struct {
	mu    sync.Mutex
	named map[vedette.AccountName]namedAccount // what the agent has named and not deregistered
	terms map[vedette.AccountName]vedette.Term // of the accounts of which it is the cacher; 0 if it was
}

// namedAccount counts an account that the agent has named.
type namedAccount struct {
	bytes int // of memory
	times int // how often the agent has named it
}

func newSessionAccounts() sessionAccounts {
	return sessionAccounts{named: map[vedette.AccountName]namedAccount{}, terms: map[vedette.AccountName]vedette.Term{}}
}

// register queues the registration of an account.
func (s *session) register(r *wire.Register) {
	name := vedette.AccountName(r.GetAccount())
	if err := checkRegister(r); err != nil {
		s.rejectRegistration(name, err)
		return
	}
	if !s.track(name, propertiesMemory*len(r.GetProperties())) {
		s.rejectRegistration(name, vedette.Errorf(vedette.Invalid, "the agent already has %d accounts, which is the maximum", maxAccounts))
		return
	}
	account := vedette.Account{
		Name: name, Cluster: cleanCluster(wire.ToCluster(r.GetCluster())), Namespaces: r.GetNamespaces(),
		Shape: r.GetShape() + "." + s.server.projectionHash,
	}
	if err := exactjson.Unmarshal(r.GetProperties(), &account.Properties, exactjson.Limits{}); err != nil {
		s.rejectRegistration(name, vedette.Errorf(vedette.Invalid, "the account's properties are not a valid JSON object: %w", err))
		return
	}
	s.registrations.put(name, func(ctx context.Context) error { return s.member.Register(ctx, account) })
}

// cleanCluster makes the identity of a cluster safe to store.
func cleanCluster(c vedette.Cluster) vedette.Cluster {
	for _, field := range []*string{&c.UID, &c.Host, &c.Fingerprint, &c.Version} {
		*field = vedette.CleanText(*field, maxIdentityBytes)
	}
	return c
}

// rejectRegistration answers an invalid registration without a look at the store.
func (s *session) rejectRegistration(name vedette.AccountName, err error) {
	name = vedette.AccountName(vedette.CleanText(string(name), maxNameBytes))
	if n, ok := s.server.registrationLog.Allow(); ok {
		s.log.Warn("account rejected", "account", name, "error", err, "count", n)
	}
	s.assign(assignment.Assignment{Account: name, Role: assignment.Refused, Message: err.Error()})
}

// track counts an account and its memory besides its name. It returns false if the
// agent has too many accounts.
func (s *session) track(name vedette.AccountName, bytes int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	account, known := s.named[name]
	if !known && len(s.named) >= maxAccounts {
		return false
	}
	size := max(account.bytes, accountMemory+len(name)+bytes)
	s.share.grow(size - account.bytes)
	s.named[name] = namedAccount{bytes: size, times: account.times + 1}
	return true
}

func (s *session) tracked(name vedette.AccountName) (account namedAccount, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	account, known = s.named[name]
	return account, known
}

// untrack releases the memory of an account, unless the agent has named it again since account was
// read. Otherwise an agent whose accounts come and go would reach a limit some day.
func (s *session) untrack(name vedette.AccountName, account namedAccount) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.named[name] == account {
		delete(s.named, name)
		s.share.release(account.bytes)
	}
}

// accountErrorKinds are the kinds of an account error that mean something to this server.
var accountErrorKinds = []vedette.ErrorKind{vedette.Invalid, vedette.Denied, vedette.Unavailable, vedette.Waiting}

// setAccountError records why the agent does not report an account. The account need
// not be registered, because an agent that cannot reach a cluster cannot register it.
func (s *session) setAccountError(t *wire.AccountError) {
	name, message := vedette.AccountName(t.GetAccount()), vedette.CleanText(t.GetMessage(), maxAccountError)
	kind := vedette.ErrorKind(t.GetKind())
	if !slices.Contains(accountErrorKinds, kind) {
		kind = "" // of a newer agent
	}
	if name.Validate() != nil || !s.track(name, len(message)) {
		s.logUnknownAccount("account error", name)
		return
	}
	s.member.SetAccountError(name, assigner.AccountError{Kind: kind, Message: message})
}

// deregister removes an account from the agent.
func (s *session) deregister(name vedette.AccountName) {
	account, known := s.tracked(name)
	if !known {
		s.logUnknownAccount("deregistration", name)
		return
	}
	s.clearTerm(name)
	s.registrations.put(name, func(ctx context.Context) error {
		s.member.Deregister(ctx, name)
		s.clearTerm(name) // it may have been assigned the account meanwhile
		s.untrack(name, account)
		return nil
	})
}

// holdsTerm reports whether the agent is the cacher of an account in a term, and
// whether it has been the cacher of the account on this connection.
func (s *session) holdsTerm(name vedette.AccountName, term vedette.Term) (holds, heldBefore bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	current, heldBefore := s.terms[name]
	return heldBefore && current != 0 && current == term, heldBefore
}

// hasHeldAccount reports whether the agent is, or was, the cacher of any account.
func (s *session) hasHeldAccount() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.terms) > 0
}

func (s *session) setTermLocked(name vedette.AccountName, term vedette.Term) {
	if len(s.terms) > len(s.named)+maxEndedTerms {
		maps.DeleteFunc(s.terms, func(_ vedette.AccountName, t vedette.Term) bool { return t == 0 })
	}
	s.terms[name] = term
}

// maxEndedTerms is how many accounts are remembered that the agent has deregistered.
const maxEndedTerms = 1000

// clearTerm records that the agent is no longer the cacher of an account. The entry
// stays, because records of the account may still be in transit.
func (s *session) clearTerm(name vedette.AccountName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearTermLocked(name)
}

func (s *session) clearTermLocked(name vedette.AccountName) {
	if s.terms[name] != 0 {
		s.terms[name] = 0
	}
}

var roles = map[assignment.Role]wire.Assignment_Role{
	assignment.Cacher:  wire.Assignment_ROLE_CACHER,
	assignment.Standby: wire.Assignment_ROLE_STANDBY,
	assignment.Refused: wire.Assignment_ROLE_REFUSED,
}

// assign sends the agent its role. assignment calls it. What is sent afterwards is about the new term: the agent
// relies on that for acknowledgements of skipped records, and for indexes.
func (s *session) assign(a assignment.Assignment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assignLocked(a)
}

func (s *session) assignLocked(a assignment.Assignment) {
	if a.Role == assignment.Cacher {
		s.setTermLocked(a.Account, a.Term) // before the agent can send records in this term
	} else {
		s.clearTermLocked(a.Account)
	}
	s.out.put(&wire.ServerMessage{Message: &wire.ServerMessage_Assignment{Assignment: &wire.Assignment{
		Account: string(a.Account), Role: roles[a.Role], Term: int64(a.Term),
		Marks: wire.FromMarks(a.Marks), Message: a.Message,
	}}})
}
