package admission

import (
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// Priority counts the operations in progress. While there are any, commits are split into
// chunks, because an operation that writes through waits for the commit before it.
// Use NewPriority to create one.
type Priority struct {
	chunkSize    int
	singleWriter bool

	mu       sync.Mutex
	total    int
	accounts map[vedette.AccountName]int
}

// GracePeriod is how long commits stay split after an operation has ended: operations come in
// groups, and the next one would wait for a large commit that has just begun.
const GracePeriod = 250 * time.Millisecond

// NewPriority returns a Priority whose chunks have chunkSize objects. If the database takes
// one writer at a time, an operation splits the commits of all accounts, otherwise only
// those of its own.
func NewPriority(chunkSize int, singleWriter bool) *Priority {
	return &Priority{chunkSize: chunkSize, singleWriter: singleWriter, accounts: map[vedette.AccountName]int{}}
}

// Begin notes that an operation of an account is in progress until end is called.
func (p *Priority) Begin(account vedette.AccountName) (end func()) {
	p.add(account, 1)
	return sync.OnceFunc(func() {
		time.AfterFunc(GracePeriod, func() { p.add(account, -1) })
	})
}

func (p *Priority) add(account vedette.AccountName, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total += n
	p.accounts[account] += n
	if p.accounts[account] == 0 {
		delete(p.accounts, account)
	}
}

// ChunkLimit returns how many objects a commit to an account may write in one transaction; 0
// means any number.
func (p *Priority) ChunkLimit(account vedette.AccountName) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.accounts[account] > 0 || p.singleWriter && p.total > 0 {
		return p.chunkSize
	}
	return 0
}
