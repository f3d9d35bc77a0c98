package task_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/tasks"
)

// memoryStore is a store in memory, for tests in a synctest bubble, which the goroutines of a
// database cannot join. database_test.go runs similar tests with a database.
type memoryStore struct {
	mu           sync.Mutex
	rows         map[string]tasks.Task
	unavailable  bool     // the database does not answer
	storedBodies []string // all bodies that were stored
}

func newMemoryStore() *memoryStore { return &memoryStore{rows: map[string]tasks.Task{}} }

var errUnavailable = vedette.Errorf(vedette.Unavailable, "the database does not answer")

func (m *memoryStore) setUnavailable(unavailable bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unavailable = unavailable
}

func (m *memoryStore) lock() (func(), error) {
	m.mu.Lock()
	if m.unavailable {
		m.mu.Unlock()
		return nil, errUnavailable
	}
	return m.mu.Unlock, nil
}

func (m *memoryStore) CreateTask(_ context.Context, row tasks.Task) (tasks.Task, bool, error) {
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

func (m *memoryStore) put(row tasks.Task) {
	m.rows[row.ID] = row
	m.storedBodies = append(m.storedBodies, string(row.Body))
}

func (m *memoryStore) SaveTask(_ context.Context, row tasks.Task) error {
	unlock, err := m.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if old := m.rows[row.ID]; old.Server != row.Server || old.State != tasks.Running {
		return vedette.Errorf(vedette.Conflict, "task %s belongs to another server or has ended", row.ID)
	}
	m.put(row)
	return nil
}

func (m *memoryStore) AcquireTask(_ context.Context, id string, from, to vedette.ServerID) (tasks.Task, error) {
	unlock, err := m.lock()
	if err != nil {
		return tasks.Task{}, err
	}
	defer unlock()
	row, ok := m.rows[id]
	if !ok || row.Server != from || row.State != tasks.Retryable && (row.State != tasks.Running || from == to) {
		return row, vedette.Errorf(vedette.Conflict, "task %s cannot be acquired", id)
	}
	row.Server, row.State, row.LastSeen, row.Ended = to, tasks.Running, time.Now(), time.Time{}
	m.rows[id] = row
	return row, nil
}

func (m *memoryStore) Task(_ context.Context, id string) (tasks.Task, error) {
	unlock, err := m.lock()
	if err != nil {
		return tasks.Task{}, err
	}
	defer unlock()
	row, ok := m.rows[id]
	if !ok {
		return row, vedette.Errorf(vedette.NotFound, "task %s not found", id)
	}
	return row, nil
}

func (m *memoryStore) TaskOwners(context.Context) (map[string]vedette.ServerID, error) {
	rows, err := m.findRunning(func(tasks.Task) bool { return true })
	owners := map[string]vedette.ServerID{}
	for _, row := range rows {
		owners[row.ID] = row.Server
	}
	return owners, err
}

func (m *memoryStore) RunningTasks(context.Context, int) ([]tasks.Task, error) {
	return m.findRunning(func(row tasks.Task) bool { return true })
}

func (m *memoryStore) findRunning(matches func(tasks.Task) bool) ([]tasks.Task, error) {
	unlock, err := m.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	var found []tasks.Task
	for _, row := range m.rows {
		if row.State == tasks.Running && matches(row) {
			found = append(found, row)
		}
	}
	slices.SortFunc(found, func(a, b tasks.Task) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

func (m *memoryStore) TouchTasks(_ context.Context, server vedette.ServerID, at time.Time) error {
	unlock, err := m.lock()
	if err != nil {
		return err
	}
	defer unlock()
	for id, row := range m.rows {
		if row.Server == server && row.State == tasks.Running {
			row.LastSeen = at
			m.rows[id] = row
		}
	}
	return nil
}

func (m *memoryStore) AbandonedTasks(_ context.Context, server vedette.ServerID, before time.Time) ([]tasks.Task, error) {
	return m.findRunning(func(row tasks.Task) bool { return row.Server == server || row.LastSeen.Before(before) })
}

func (m *memoryStore) PurgeTasks(_ context.Context, before time.Time, limit int) (int, error) {
	unlock, err := m.lock()
	if err != nil {
		return 0, err
	}
	defer unlock()
	n := 0
	for id, row := range m.rows {
		if n < limit && row.State != tasks.Running && row.Ended.Before(before) {
			delete(m.rows, id)
			n++
		}
	}
	return n, nil
}
