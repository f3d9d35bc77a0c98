package store

import (
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// priority counts the operations that are under way.
type priority struct {
	mu       sync.Mutex
	total    int
	accounts map[vedette.AccountName]int
}

// priorityGrace is for how long way is made after an operation has ended: it seldom
// comes alone, and the next would find a long turn that has just begun.
const priorityGrace = 250 * time.Millisecond

// Prioritize says that something is under way whose result will be written through
// to an account, until end is called. Until then, and a moment longer, commits take
// their turns in small portions, so that it need not wait long for its own: those to
// the account, and where the database takes one writer at a time, to all accounts.
func (s *Store) Prioritize(account vedette.AccountName) (end func()) {
	s.priority.add(account, 1)
	return sync.OnceFunc(func() {
		time.AfterFunc(priorityGrace, func() { s.priority.add(account, -1) })
	})
}

func (p *priority) add(account vedette.AccountName, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.accounts == nil {
		p.accounts = map[vedette.AccountName]int{}
	}
	p.total += n
	p.accounts[account] += n
	if p.accounts[account] == 0 {
		delete(p.accounts, account)
	}
}

// chunkLimit is how many objects a commit to an account may write in one turn; 0 while
// nobody hurries.
func (s *Store) chunkLimit(account vedette.AccountName) int {
	p := &s.priority
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.accounts[account] > 0 || s.dialect.singleWriter && p.total > 0 {
		return s.dialect.priorityChunkSize
	}
	return 0
}
