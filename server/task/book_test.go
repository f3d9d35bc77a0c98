package task_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// memory is a book without a database, for conversations in a bubble of time,
// which a database's own goroutines could not enter. life_store_test.go shows
// the same on a real one.
type memory struct {
	mu   sync.Mutex
	rows map[string]store.TaskRow
	away bool     // the database does not answer
	all  []string // every body that was ever stored
}

func newMemory() *memory { return &memory{rows: map[string]store.TaskRow{}} }

var errAway = vedette.Errorf(vedette.Unavailable, "the database does not answer")

func (m *memory) setAway(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = away
}

func (m *memory) lock() (func(), error) {
	m.mu.Lock()
	if m.away {
		m.mu.Unlock()
		return nil, errAway
	}
	return m.mu.Unlock, nil
}

func (m *memory) CreateTask(_ context.Context, row store.TaskRow) (store.TaskRow, bool, error) {
	unlock, err := m.lock()
	if err != nil {
		return row, false, err
	}
	defer unlock()
	for _, old := range m.rows {
		if old.RequestID == row.RequestID {
			return old, old.ID == row.ID, nil
		}
	}
	m.put(row)
	return row, true, nil
}

func (m *memory) put(row store.TaskRow) {
	m.rows[row.ID] = row
	m.all = append(m.all, string(row.Body))
}

func (m *memory) SaveTask(_ context.Context, row store.TaskRow) error {
	unlock, err := m.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if old := m.rows[row.ID]; old.Server != row.Server || old.State != store.TaskRunning {
		return vedette.Errorf(vedette.Conflict, "task %s is another server's, or has ended", row.ID)
	}
	m.put(row)
	return nil
}

func (m *memory) AcquireTask(_ context.Context, id string, from, to vedette.ServerID) (store.TaskRow, error) {
	unlock, err := m.lock()
	if err != nil {
		return store.TaskRow{}, err
	}
	defer unlock()
	row, ok := m.rows[id]
	if !ok || row.Server != from || row.State != store.TaskRetryable && (row.State != store.TaskRunning || from == to) {
		return row, vedette.Errorf(vedette.Conflict, "task %s is not there to be taken", id)
	}
	row.Server, row.State, row.LastSeen, row.Ended = to, store.TaskRunning, time.Now(), time.Time{}
	m.rows[id] = row
	return row, nil
}

func (m *memory) Task(_ context.Context, id string) (store.TaskRow, error) {
	unlock, err := m.lock()
	if err != nil {
		return store.TaskRow{}, err
	}
	defer unlock()
	row, ok := m.rows[id]
	if !ok {
		return row, vedette.Errorf(vedette.NotFound, "no task %s", id)
	}
	return row, nil
}

func (m *memory) RunningTasks(context.Context, int) ([]store.TaskRow, error) {
	return m.find(func(row store.TaskRow) bool { return true })
}

func (m *memory) find(fits func(store.TaskRow) bool) ([]store.TaskRow, error) {
	unlock, err := m.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	var found []store.TaskRow
	for _, row := range m.rows {
		if row.State == store.TaskRunning && fits(row) {
			found = append(found, row)
		}
	}
	slices.SortFunc(found, func(a, b store.TaskRow) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

func (m *memory) TouchTasks(_ context.Context, server vedette.ServerID, at time.Time) error {
	unlock, err := m.lock()
	if err != nil {
		return err
	}
	defer unlock()
	for id, row := range m.rows {
		if row.Server == server && row.State == store.TaskRunning {
			row.LastSeen = at
			m.rows[id] = row
		}
	}
	return nil
}

func (m *memory) AbandonedTasks(_ context.Context, server vedette.ServerID, before time.Time) ([]store.TaskRow, error) {
	return m.find(func(row store.TaskRow) bool { return row.Server == server || row.LastSeen.Before(before) })
}

func (m *memory) PurgeTasks(_ context.Context, before time.Time, limit int) (int, error) {
	unlock, err := m.lock()
	if err != nil {
		return 0, err
	}
	defer unlock()
	n := 0
	for id, row := range m.rows {
		if n < limit && row.State != store.TaskRunning && row.Ended.Before(before) {
			delete(m.rows, id)
			n++
		}
	}
	return n, nil
}
