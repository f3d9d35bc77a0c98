package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

// testbed is an Executor whose operations end when complete is called.
type testbed struct {
	*Executor
	t *testing.T

	mu      sync.Mutex
	started []string
	sent    []string
	results map[vedette.OperationID]chan vedette.Outcome
	// controls are those of the operations that were started.
	controls map[vedette.OperationID]*Control
	lastMore vedette.ObjectReader // of the outcome that was sent last
}

func runTestbed(t *testing.T, cfg Config, test func(b *testbed)) {
	synctest.Test(t, func(t *testing.T) {
		b := &testbed{t: t, results: map[vedette.OperationID]chan vedette.Outcome{}, controls: map[vedette.OperationID]*Control{}}
		b.Executor = New(cfg, b.handle, func(o vedette.Outcome) {
			b.mu.Lock()
			b.lastMore = o.More
			b.mu.Unlock()
			b.record(&b.sent, fmt.Sprintf("%s %s %d", o.ID, o.State, len(o.Objects)))
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		synctest.Wait()
		test(b)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (b *testbed) record(list *[]string, line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*list = append(*list, line)
}

func (b *testbed) handle(ctx context.Context, op vedette.Operation, c *Control) vedette.Outcome {
	result := make(chan vedette.Outcome, 1)
	b.mu.Lock()
	b.started = append(b.started, string(op.ID))
	b.results[op.ID], b.controls[op.ID] = result, c
	b.mu.Unlock()
	select {
	case out := <-result:
		return out
	case <-ctx.Done():
		return vedette.Outcome{State: vedette.Failed, Message: "canceled"}
	}
}

func (b *testbed) complete(id vedette.OperationID, out vedette.Outcome) {
	b.mu.Lock()
	result := b.results[id]
	b.mu.Unlock()
	result <- out
	synctest.Wait()
}

func (b *testbed) submit(ids ...vedette.OperationID) {
	for _, id := range ids {
		b.Submit(vedette.Operation{ID: id, Args: vedette.ScaleArgs{}}, nil)
		synctest.Wait()
	}
}

func (b *testbed) wantEqual(what string, got []string, want ...string) {
	b.t.Helper()
	if !slices.Equal(got, want) {
		b.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func (b *testbed) unacknowledgedIDs() []string {
	var ids []string
	for _, o := range b.Unacknowledged() {
		ids = append(ids, string(o.ID))
	}
	return ids
}

func TestDuplicateOperationRunsOnce(t *testing.T) {
	runTestbed(t, Config{}, func(b *testbed) {
		b.submit("a", "a")
		b.wantEqual("started", b.started, "a")
		b.complete("a", vedette.Outcome{State: vedette.Done})
		b.submit("a") // the acknowledgement was lost with its connection
		b.wantEqual("started", b.started, "a")
		b.wantEqual("sent", b.sent, "a done 0", "a done 0")
		b.wantEqual("unacknowledged", b.unacknowledgedIDs(), "a")
		b.Forget("a")
		b.wantEqual("unacknowledged", b.unacknowledgedIDs())
	})
}

func TestForgetWhileRunning(t *testing.T) {
	runTestbed(t, Config{}, func(b *testbed) {
		b.submit("a")
		b.Forget("a") // a late acknowledgement; the operation must not start again
		b.submit("a")
		b.wantEqual("started", b.started, "a")
		b.complete("a", vedette.Outcome{State: vedette.Done})
	})
}

func TestCancelStopsReadsOnly(t *testing.T) {
	runTestbed(t, Config{}, func(b *testbed) {
		b.Submit(vedette.Operation{ID: "read", Args: vedette.GetArgs{}}, nil)
		b.submit("write")
		b.Cancel("read")
		b.Cancel("write")
		synctest.Wait()
		b.wantEqual("running", []string{fmt.Sprint(b.Running())}, "1")
		b.complete("write", vedette.Outcome{State: vedette.Done})
		b.wantEqual("unacknowledged", b.unacknowledgedIDs(), "write")
	})
}

// Above the limit the oldest outcomes lose their payload. Those of read-only operations are
// removed, others are not.
func TestOutcomeMemoryIsBounded(t *testing.T) {
	runTestbed(t, Config{MaxOutcomeBytes: 4000}, func(b *testbed) {
		big := []json.RawMessage{json.RawMessage(strings.Repeat("x", 2500))}
		b.submit("a", "b")
		b.Submit(vedette.Operation{ID: "r", Args: vedette.ListArgs{}}, nil)
		synctest.Wait()
		b.complete("a", vedette.Outcome{State: vedette.Done, Objects: big})
		b.complete("r", vedette.Outcome{State: vedette.Done, Objects: big})
		b.complete("b", vedette.Outcome{State: vedette.Done, Objects: big})
		remembered := func() (got []string) {
			for _, o := range b.Unacknowledged() {
				got = append(got, fmt.Sprintf("%s %d %d", o.ID, len(o.Objects), len(o.Warnings)))
			}
			return got
		}
		b.wantEqual("kept outcomes", remembered(), "a 0 0", "b 1 0")
		b.submit("c", "d")
		b.complete("c", vedette.Outcome{State: vedette.Done, Warnings: []string{strings.Repeat("x", 2500)}})
		b.wantEqual("kept outcomes", remembered(), "a 0 0", "b 0 0", "c 0 1")
		b.complete("d", vedette.Outcome{State: vedette.Done, Objects: big})
		b.wantEqual("kept outcomes", remembered(), "a 0 0", "b 0 0", "c 0 0", "d 1 0")
	})
}

func TestOldOutcomesExpire(t *testing.T) {
	runTestbed(t, Config{AckTimeout: time.Hour}, func(b *testbed) {
		b.submit("a")
		b.complete("a", vedette.Outcome{State: vedette.Done})
		time.Sleep(59 * time.Minute)
		b.wantEqual("after 59 minutes", b.unacknowledgedIDs(), "a")
		time.Sleep(3 * time.Minute)
		b.wantEqual("after 62 minutes", b.unacknowledgedIDs())
	})
}

func TestOperationsWaitForAWorker(t *testing.T) {
	runTestbed(t, Config{MaxWorkers: 1}, func(b *testbed) {
		b.submit("a")
		b.Submit(vedette.Operation{ID: "b", Args: vedette.ScaleArgs{}, Deadline: time.Now().Add(time.Second)}, nil)
		b.submit("c")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		b.wantEqual("sent", b.sent, "b failed 0") // it got no worker
		b.complete("a", vedette.Outcome{State: vedette.Done})
		b.wantEqual("started", b.started, "a", "c")
		b.complete("c", vedette.Outcome{State: vedette.Done})
	})
}

// A stream is read once, so it is not kept, and its context stays open until Forget.
func TestStreamsAreLimitedAndReadOnce(t *testing.T) {
	runTestbed(t, Config{MaxStreams: 1}, func(b *testbed) {
		b.Submit(vedette.Operation{ID: "log", Args: vedette.LogsArgs{}}, nil)
		synctest.Wait()
		b.complete("log", vedette.Outcome{State: vedette.Done, Stream: io.NopCloser(strings.NewReader("text"))})
		b.wantEqual("unacknowledged", b.unacknowledgedIDs())
		b.Submit(vedette.Operation{ID: "log", Args: vedette.LogsArgs{}}, nil)
		synctest.Wait()
		b.wantEqual("sent", b.sent, "log done 0")
		b.Submit(vedette.Operation{ID: "other", Args: vedette.LogsArgs{}}, nil)
		synctest.Wait()
		b.complete("other", vedette.Outcome{State: vedette.Done, Stream: io.NopCloser(strings.NewReader("text"))})
		b.wantEqual("sent", b.sent, "log done 0", "other failed 0")
		b.Forget("log")
		b.Submit(vedette.Operation{ID: "log", Args: vedette.LogsArgs{}}, nil)
		synctest.Wait()
		b.wantEqual("started", b.started, "log", "other", "log")
	})
}
