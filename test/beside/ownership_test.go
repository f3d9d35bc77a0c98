package beside

import (
	"fmt"
	"sync"
	"time"
)

// owner is who answers for an account.
type owner int

// The owners of accounts.
const (
	unknown owner = iota
	upstream
	agents
)

func (o owner) String() string {
	return [...]string{"unknown", "the upstream Clouddriver", "agents"}[o]
}

// ownership knows who answers for which account. While an account moves, the first answer of its new owner ends
// the time of the old one, for all endpoints.
type ownership struct {
	mu       sync.Mutex
	accounts map[string]*move
}

// move is the last change of an account's owner. Both owners are equal if it has ended.
type move struct {
	from, to owner
	since    time.Time
	arrived  time.Time // when the first answer of the new owner had come; zero before
}

func newOwnership(accounts ...string) *ownership {
	o := &ownership{accounts: map[string]*move{}}
	for _, account := range accounts {
		o.accounts[account] = &move{from: upstream, to: upstream, since: time.Now()}
	}
	return o
}

// begin says that an account is about to move.
func (o *ownership) begin(account string, to owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.accounts[account] = &move{from: o.accounts[account].to, to: to, since: time.Now()}
}

// finish says that an account has moved.
func (o *ownership) finish(account string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.accounts[account]
	o.accounts[account] = &move{from: m.to, to: m.to, since: time.Now()}
}

// isOwned reports whether agents have had an account since a time.
func (o *ownership) isOwned(account string, since time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.accounts[account]
	return m != nil && m.from == agents && m.to == agents && m.since.Before(since)
}

// observe takes note of who answered for an account to a request, and returns what is wrong with that.
func (o *ownership) observe(account string, by owner, began, ended time.Time) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.accounts[account]
	if m == nil || by == unknown || began.Before(m.since) {
		return ""
	}
	if by == m.to {
		if m.arrived.IsZero() || ended.Before(m.arrived) {
			m.arrived = ended
		}
		return ""
	}
	switch {
	case m.from == m.to:
		return fmt.Sprintf("account %s is answered by %v, want %v", account, by, m.to)
	case !m.arrived.IsZero() && began.After(m.arrived):
		return fmt.Sprintf("account %s is answered by %v although %v answered before", account, by, m.to)
	}
	return ""
}
