package store

import (
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// hurry counts the operations that are under way.
type hurry struct {
	mu       sync.Mutex
	all      int
	accounts map[vedette.AccountName]int
}

// lingering is for how long way is made after an operation has ended: it seldom
// comes alone, and the next would find a long turn that has just begun.
const lingering = 250 * time.Millisecond

// MakeWay says that something is under way whose result will be written through
// to an account, until end is called. Until then, and a moment longer, commits take
// their turns in small portions, so that it need not wait long for its own: those to
// the account, and where the database takes one writer at a time, to all accounts.
func (s *Store) MakeWay(account vedette.AccountName) (end func()) {
	s.hurry.add(account, 1)
	return sync.OnceFunc(func() {
		time.AfterFunc(lingering, func() { s.hurry.add(account, -1) })
	})
}

func (h *hurry) add(account vedette.AccountName, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.accounts == nil {
		h.accounts = map[vedette.AccountName]int{}
	}
	h.all += n
	h.accounts[account] += n
	if h.accounts[account] == 0 {
		delete(h.accounts, account)
	}
}

// mostInTurn is how many objects a commit to an account may write in one turn; 0 while
// nobody hurries.
func (s *Store) mostInTurn(account vedette.AccountName) int {
	h := &s.hurry
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.accounts[account] > 0 || s.dialect.oneWriter && h.all > 0 {
		return s.dialect.shortTurn
	}
	return 0
}
