package task_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/task"
)

// stubborn does not take the end of a task the first few times.
type stubborn struct {
	*memory
	times int // guarded by memory.mu
	with  error
}

func (b *stubborn) SaveTask(ctx context.Context, row store.TaskRow) error {
	if row.State != store.TaskRunning {
		b.mu.Lock()
		b.times--
		refuses := b.times >= 0
		b.mu.Unlock()
		if refuses {
			return b.with
		}
	}
	return b.memory.SaveTask(ctx, row)
}

// TestOnlyDataIsShortened holds that the end of a task loses its manifests only where
// the database can't keep them, and not where it fails for a moment.
func TestOnlyDataIsShortened(t *testing.T) {
	for _, tt := range []struct {
		with  error
		short bool
	}{{fmt.Errorf("save: %w", store.ErrData), true}, {context.DeadlineExceeded, false}, {errAway, false}} {
		t.Run(tt.with.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				book := &stubborn{memory: newMemory(), times: 2, with: tt.with}
				s := newServer(task.Config{Store: book})
				id := s.post(t, "/kubernetes/ops?clientRequestId=1", deployThree)
				time.Sleep(time.Minute) // the bubble's
				synctest.Wait()
				row, err := book.Task(t.Context(), id)
				if err != nil || row.State != store.TaskSucceeded {
					t.Fatalf("%s, %v", row.State, err)
				}
				if short := strings.Contains(string(row.Body), `"manifests":[]`); short != tt.short {
					t.Errorf("the manifests are left out: %v; want %v: %.300s", short, tt.short, row.Body)
				}
			})
		})
	}
}
