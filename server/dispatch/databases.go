package dispatch

import (
	"context"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/history"
)

// endStore stores the ends of operations on accounts of one database.
type endStore interface {
	EndOperations(ctx context.Context, rows []history.Operation) error
}

// endsByDatabase writes ends to several databases. One that does not answer keeps no other waiting. The zero value is ready to use.
type endsByDatabase struct {
	writing sync.WaitGroup
	mu      sync.Mutex
	busy    map[endStore]bool
}

// split returns where each end is stored; nil if there is one database.
func (*endsByDatabase) split(ctx context.Context, store historyStore, ends []endRecord) (map[endStore][]endRecord, error) {
	accounts := make([]vedette.AccountName, 0, len(ends))
	seen := map[vedette.AccountName]bool{}
	for i := range ends {
		if account := ends[i].row.Account; !seen[account] {
			seen[account] = true
			accounts = append(accounts, account)
		}
	}
	if len(accounts) == 0 {
		return nil, nil
	}
	histories, err := store.Histories(ctx, accounts)
	if err != nil || histories == nil {
		return nil, err
	}
	of := map[vedette.AccountName]endStore{}
	for h, names := range histories {
		for _, name := range names {
			of[name] = h
		}
	}
	byDatabase := map[endStore][]endRecord{}
	for _, e := range ends {
		byDatabase[of[e.row.Account]] = append(byDatabase[of[e.row.Account]], e)
	}
	return byDatabase, nil
}

// start calls write in a goroutine and then wake, or calls wait if another one writes to the database, which wakes later.
func (d *endsByDatabase) start(store endStore, write, wake, wait func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy[store] {
		wait()
		return
	}
	if d.busy == nil {
		d.busy = map[endStore]bool{}
	}
	d.busy[store] = true
	d.writing.Go(func() {
		write()
		d.mu.Lock()
		d.busy[store] = false
		d.mu.Unlock()
		wake()
	})
}
