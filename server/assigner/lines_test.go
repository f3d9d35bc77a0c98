package assigner

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store/registry"
)

// stuckWriter is a log whose reader stands still until resumed is closed.
type stuckWriter struct {
	resumed chan struct{}
	text    strings.Builder // by one goroutine
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	<-w.resumed
	return w.text.Write(p)
}

// TestLogThatStandsStill checks that accounts are assigned while no line of the log can be written, that the lines follow, and that
// those for which there was no room are counted.
func TestLogThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &memoryStore{rows: map[vedette.AccountName]*registry.Account{}}
		out := &stuckWriter{resumed: make(chan struct{})}
		r := New("s1", assignment.Config{}, memory, memory, slog.New(slog.NewTextHandler(out, nil)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		agent := r.Join(assignment.Agent{ID: "a1"}, func(assignment.Assignment) {})
		const extra = 10
		for i := range 1 + maxLines + extra { // the first one is taken at once
			if err := agent.Register(ctx, vedette.Account{Name: vedette.AccountName(fmt.Sprint("a", i)), Cluster: vedette.Cluster{UID: "u"}}); err != nil {
				t.Errorf("account %d cannot be registered while the log stands still: %v", i, err)
				break
			}
			synctest.Wait()
		}
		close(out.resumed)
		r.Close()
		if n := strings.Count(out.text.String(), "account has a cacher"); n != 1+maxLines {
			t.Errorf("got %d lines, want %d", n, 1+maxLines)
		}
		if want := fmt.Sprintf("lines=%d", extra); !strings.Contains(out.text.String(), want) {
			t.Errorf("the log does not say %s", want)
		}
	})
}
