package admission

import (
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// ActiveOperations counts the operations in progress. While there are any, commits are split into
// chunks, because an operation that writes through waits for the commit before it.
// Use NewActiveOperations to create one.
type ActiveOperations struct {
	chunkSize    int
	singleWriter bool

	mu       sync.Mutex
	total    int
	accounts map[vedette.AccountName]int
}

// GracePeriod is how long commits stay split after an operation has ended: operations come in
// groups, and the next one would wait for a large commit that has just begun.
const GracePeriod = 250 * time.Millisecond

// NewActiveOperations returns ActiveOperations whose chunks have chunkSize objects. If the database takes
// one writer at a time, an operation splits the commits of all accounts, otherwise only
// those of its own.
func NewActiveOperations(chunkSize int, singleWriter bool) *ActiveOperations {
	return &ActiveOperations{chunkSize: chunkSize, singleWriter: singleWriter, accounts: map[vedette.AccountName]int{}}
}

// Begin notes that an operation of an account is in progress until end is called.
func (a *ActiveOperations) Begin(account vedette.AccountName) (end func()) {
	a.add(account, 1)
	return sync.OnceFunc(func() {
		time.AfterFunc(GracePeriod, func() { a.add(account, -1) })
	})
}

func (a *ActiveOperations) add(account vedette.AccountName, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total += n
	a.accounts[account] += n
	if a.accounts[account] == 0 {
		delete(a.accounts, account)
	}
}

// ChunkLimit returns how many objects a commit to an account may write in one transaction; 0
// means any number.
func (a *ActiveOperations) ChunkLimit(account vedette.AccountName) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.accounts[account] > 0 || a.singleWriter && a.total > 0 {
		return a.chunkSize
	}
	return 0
}
