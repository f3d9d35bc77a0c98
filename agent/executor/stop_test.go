package executor

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

// TestOperationsEndWhenTheAgentStops checks what an agent that stops still does, and for how long.
func TestOperationsEndWhenTheAgentStops(t *testing.T) {
	type event struct {
		after time.Duration // since the stop
		do    func(b *testbed)
	}
	done := func(id vedette.OperationID) func(b *testbed) {
		return func(b *testbed) { b.complete(id, vedette.Outcome{State: vedette.Done}) }
	}
	for _, tt := range []struct {
		name   string
		events []event
		took   time.Duration
		sent   []string
	}{
		{"an operation runs", []event{{time.Second, done("a")}, {2 * time.Second, func(b *testbed) { b.Forget("a") }}}, 2 * time.Second, []string{"a done 0"}},
		{"one arrives meanwhile", []event{{time.Second, func(b *testbed) { b.Submit(vedette.Operation{ID: "b"}, nil) }},
			{2 * time.Second, func(b *testbed) { done("a")(b); b.Forget("a"); done("b")(b) }}, {3 * time.Second, func(b *testbed) { b.Forget("a"); b.Forget("b") }}},
			3 * time.Second, []string{"a done 0", "b done 0"}},
		{"nobody acknowledges", []event{{time.Second, done("a")}}, 8 * time.Second, []string{"a done 0"}},
		{"it does not end", nil, 8 * time.Second, []string{"a failed 0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &testbed{t: t, results: map[vedette.OperationID]chan vedette.Outcome{}, controls: map[vedette.OperationID]*Control{}}
				b.Executor = New(Config{}, b.handle, func(o vedette.Outcome) { b.record(&b.sent, string(o.ID)+" "+string(o.State)+" 0") })
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan time.Time)
				go func() {
					_ = b.Run(ctx)
					ended <- time.Now()
				}()
				synctest.Wait()
				b.Submit(vedette.Operation{ID: "a"}, nil)
				synctest.Wait()
				stopped := time.Now()
				stop()
				for _, e := range tt.events {
					time.AfterFunc(e.after, func() { e.do(b) })
				}
				if took := (<-ended).Sub(stopped).Round(time.Second); took != tt.took {
					t.Errorf("the executor stopped after %v, want %v", took, tt.took)
				}
				slices.Sort(b.sent)
				if !slices.Equal(b.sent, tt.sent) {
					t.Errorf("got outcomes %q, want %q", b.sent, tt.sent)
				}
				b.Submit(vedette.Operation{ID: "c"}, nil)
				synctest.Wait()
				if slices.Contains(b.started, "c") {
					t.Error("an executor that has stopped executes an operation")
				}
			})
		})
	}
}
