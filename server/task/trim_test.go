package task_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/tasks"
	"github.com/vedette-io/vedette/server/task"
)

// failingStore fails to store the end of a task the first few times.
type failingStore struct {
	*memoryStore
	failures int // guarded by memory.mu
	err      error
}

func (s *failingStore) SaveTask(ctx context.Context, row tasks.Task) error {
	if row.State != tasks.Running {
		s.mu.Lock()
		s.failures--
		fails := s.failures >= 0
		s.mu.Unlock()
		if fails {
			return s.err
		}
	}
	return s.memoryStore.SaveTask(ctx, row)
}

// TestManifestsAreTrimmedOnlyOnDataErrors checks that the end of a task loses its manifests
// only if the database cannot store them, not after a temporary failure.
func TestManifestsAreTrimmedOnlyOnDataErrors(t *testing.T) {
	for _, tt := range []struct {
		err     error
		trimmed bool
	}{{fmt.Errorf("save: %w", sqldb.ErrData), true}, {context.DeadlineExceeded, false}, {errUnavailable, false}} {
		t.Run(tt.err.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failing := &failingStore{memoryStore: newMemoryStore(), failures: 2, err: tt.err}
				s := newServer(task.Config{Store: failing})
				id := s.post(t, "/kubernetes/ops?clientRequestId=1", deployThree)
				time.Sleep(time.Minute) // time of the bubble
				synctest.Wait()
				row, err := failing.Task(t.Context(), id)
				if err != nil || row.State != tasks.Succeeded {
					t.Fatalf("got %s, %v", row.State, err)
				}
				if trimmed := strings.Contains(string(row.Body), `"manifests":[]`); trimmed != tt.trimmed {
					t.Errorf("manifests trimmed: got %v, want %v: %.300s", trimmed, tt.trimmed, row.Body)
				}
			})
		})
	}
}
