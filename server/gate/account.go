package gate

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/roster"
	"github.com/vedette-io/vedette/wire"
)

// accounts is what a session knows of its agent's accounts.
type accounts struct {
	mu    sync.Mutex
	known map[vedette.AccountName]int          // bytes of memory, by account that the agent has spoken of
	held  map[vedette.AccountName]vedette.Term // that it is the cacher of; 0 where it was
}

func newAccounts() accounts {
	return accounts{known: map[vedette.AccountName]int{}, held: map[vedette.AccountName]vedette.Term{}}
}

// register has the roster asked for a role.
func (s *session) register(r *wire.Register) {
	name := vedette.AccountName(r.GetAccount())
	if err := checkRegister(r); err != nil {
		s.refuse(name, err)
		return
	}
	if !s.know(name, propertiesMemory*len(r.GetProperties())) {
		s.refuse(name, vedette.Errorf(vedette.Invalid, "the agent has %d accounts already; no more are taken of one agent", maxAccounts))
		return
	}
	account := vedette.Account{
		Name: name, Cluster: cleanCluster(wire.ToCluster(r.GetCluster())), Namespaces: r.GetNamespaces(),
		Shape: r.GetShape() + "." + s.gate.lifted,
	}
	if err := json.Unmarshal(r.GetProperties(), &account.Properties); err != nil {
		s.refuse(name, vedette.Errorf(vedette.Invalid, "the account's properties are no JSON object that this server can read: %w", err))
		return
	}
	s.registrations.put(name, func(ctx context.Context) error { return s.member.Register(ctx, account) })
}

// cleanCluster makes what a cluster says of itself fit to be stored.
func cleanCluster(c vedette.Cluster) vedette.Cluster {
	for _, text := range []*string{&c.UID, &c.Host, &c.Fingerprint, &c.Version} {
		*text = vedette.CleanText(*text, maxIdentity)
	}
	return c
}

// refuse answers a registration that the roster is not asked about.
func (s *session) refuse(name vedette.AccountName, err error) {
	name = vedette.AccountName(vedette.CleanText(string(name), maxName))
	if n, ok := s.gate.unusable.Pass(); ok {
		s.log.Warn("account refused", "account", name, "error", err, "count", n)
	}
	s.assign(roster.Assignment{Account: name, Role: roster.Refused, Message: err.Error()})
}

// know counts an account as the agent's, with what is kept of it besides its name. It
// is false where the agent has too many.
func (s *session) know(name vedette.AccountName, bytes int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	took, known := s.known[name]
	if !known && len(s.known) >= maxAccounts {
		return false
	}
	takes := accountMemory + len(name) + bytes
	if known {
		takes = max(took, takes)
	}
	s.known[name] = takes
	s.share.grow(takes - took)
	return true
}

func (s *session) isKnown(name vedette.AccountName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.known[name]
	return known
}

// trouble notes what keeps the agent from reporting an account, which it need not
// have registered: it can't, while it can't reach the cluster.
func (s *session) trouble(t *wire.Trouble) {
	name, message := vedette.AccountName(t.GetAccount()), vedette.CleanText(t.GetMessage(), maxTrouble)
	if len(name) > maxName || !isPrintable(string(name)) || !s.know(name, len(message)) {
		s.foreign("trouble", name)
		return
	}
	s.member.Trouble(name, message)
}

// deregister gives an account back that the agent has registered.
func (s *session) deregister(name vedette.AccountName) {
	if !s.isKnown(name) {
		s.foreign("a deregistration", name)
		return
	}
	s.release(name)
	s.registrations.put(name, func(ctx context.Context) error {
		s.member.Deregister(ctx, name)
		s.release(name) // it may have been given the account since
		return nil
	})
}

// holds reports whether the agent is the cacher of an account in a term, and if it
// is not, whether it was before on this connection.
func (s *session) holds(name vedette.AccountName, term vedette.Term) (holds, was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, was := s.held[name]
	return was && held != 0 && held == term, was
}

// hasHeld reports whether the agent is or was the cacher of any account.
func (s *session) hasHeld() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held) > 0
}

func (s *session) hold(name vedette.AccountName, term vedette.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = term
}

// release notes that an account is the agent's no more. That it was is remembered,
// since some of its records may be on their way.
func (s *session) release(name vedette.AccountName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[name] != 0 {
		s.held[name] = 0
	}
}

var roles = map[roster.Role]wire.Assignment_Role{
	roster.Cacher:  wire.Assignment_ROLE_CACHER,
	roster.Standby: wire.Assignment_ROLE_STANDBY,
	roster.Refused: wire.Assignment_ROLE_REFUSED,
}

// assign tells the agent its role. The roster calls it.
func (s *session) assign(a roster.Assignment) {
	if a.Role == roster.Cacher {
		s.hold(a.Account, a.Term) // before the agent hears of it
	} else {
		s.release(a.Account)
	}
	s.out.put(&wire.ServerMessage{Message: &wire.ServerMessage_Assignment{Assignment: &wire.Assignment{
		Account: string(a.Account), Role: roles[a.Role], Term: int64(a.Term),
		Marks: wire.FromMarks(a.Marks), Message: a.Message,
	}}})
}
