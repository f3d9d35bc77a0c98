package executor

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

// TestOperationsAreListedWhileTheyRun checks that operations are listed while they run, and logs until they are
// closed.
func TestOperationsAreListedWhileTheyRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		x := New(Config{}, func(_ context.Context, op vedette.Operation, _ *Control) vedette.Outcome {
			if _, ok := op.Args.(vedette.LogsArgs); ok {
				return vedette.Outcome{State: vedette.Done, Stream: io.NopCloser(strings.NewReader("line"))}
			}
			<-release
			return vedette.Outcome{State: vedette.Done}
		}, func(vedette.Outcome) {})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- x.Run(ctx) }()
		synctest.Wait()
		pod := vedette.Target{Kind: "Pod", Name: "web-0"}
		x.Submit(vedette.Operation{ID: "2", Account: "a", RequestID: "r", Args: vedette.ApplyArgs{Manifest: []byte("hunter2")}}, nil)
		time.Sleep(time.Second)
		x.Submit(vedette.Operation{ID: "1", Account: "b", Args: vedette.LogsArgs{Target: pod}}, nil)
		x.Submit(vedette.Operation{ID: "3", Account: "b"}, nil)
		synctest.Wait()
		got := x.RunningOperations()
		if len(got) != 3 || got[0].ID != "2" || got[0].Verb != "apply" || got[0].Kind != "" || got[0].RequestID != "r" ||
			got[1].ID != "1" || got[1].Kind != "Pod" || got[1].Name != "web-0" || got[2].ID != "3" || got[2].Verb != "" {
			t.Errorf("got %+v", got)
		}
		close(release)
		synctest.Wait()
		if got := x.RunningOperations(); len(got) != 1 || got[0].ID != "1" {
			t.Errorf("got %+v after the ends, want the log", got)
		}
		x.Forget("1")
		if got := x.RunningOperations(); len(got) != 0 {
			t.Errorf("got %+v after the log was closed, want none", got)
		}
		cancel()
		<-done
	})
}
