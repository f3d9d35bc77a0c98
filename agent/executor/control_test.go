package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
)

// fakeDelivery is a delivery whose answers a test sets.
type fakeDelivery struct {
	mu                sync.Mutex
	late, interrupted error
}

func (d *fakeDelivery) set(late, interrupted error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late, d.interrupted = late, interrupted
}

// Late implements Delivery.
func (d *fakeDelivery) Late() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.late
}

// Interrupted implements Delivery.
func (d *fakeDelivery) Interrupted() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.interrupted
}

// TestAccountsTakeTurns checks that an account whose operations never end does not delay those of others, and
// that its own wait in a bounded queue.
func TestAccountsTakeTurns(t *testing.T) {
	runTestbed(t, Config{MaxWorkers: 16, MaxQueued: 3}, func(b *testbed) {
		for i := range 6 {
			b.Submit(vedette.Operation{ID: vedette.OperationID(fmt.Sprint("hung", i)), Account: "hung", Args: vedette.GetArgs{}}, nil)
			synctest.Wait()
		}
		b.wantEqual("started", b.started, "hung0", "hung1")
		b.wantEqual("sent", b.sent, "hung5 failed 0")
		b.Submit(vedette.Operation{ID: "other", Account: "other", Args: vedette.GetArgs{}}, nil)
		synctest.Wait()
		b.wantEqual("started", b.started, "hung0", "hung1", "other")
		b.complete("other", vedette.Outcome{State: vedette.Done})
	})
}

// TestWaitsNeedNoWorker checks that operations that only wait leave their worker to others, up to a limit, and
// that Cancel ends a wait but not the operation.
func TestWaitsNeedNoWorker(t *testing.T) {
	runTestbed(t, Config{MaxWorkers: 1, MaxWaits: 1}, func(b *testbed) {
		ended := make(chan error, 2)
		wait := func(id vedette.OperationID) {
			b.mu.Lock()
			control, result := b.controls[id], b.results[id]
			b.mu.Unlock()
			control.Wait(b.t.Context(), func(ctx context.Context) {
				<-ctx.Done()
				ended <- context.Cause(ctx)
			})
			result <- vedette.Outcome{State: vedette.Failed}
		}
		b.submit("a", "b", "c")
		go wait("a")
		synctest.Wait()
		b.wantEqual("started", b.started, "a", "b")
		go wait("b") // the limit is one wait, so it keeps its worker
		synctest.Wait()
		b.wantEqual("started", b.started, "a", "b")
		b.Cancel("a")
		b.Cancel("a") // again, on another connection
		if err := <-ended; !errors.Is(err, ErrCallerLeft) {
			t.Errorf("got the wait ended by %v, want ErrCallerLeft", err)
		}
		synctest.Wait()
		b.Cancel("b")
		<-ended
		synctest.Wait()
		b.wantEqual("started", b.started, "a", "b", "c")
		b.wantEqual("sent", b.sent, "a failed 0", "b failed 0")
		b.complete("c", vedette.Outcome{State: vedette.Done})
	})
}

// TestLateOperationIsNotStarted checks an operation that arrives, or gets its worker, after its deadline, by
// whatever clock that is known.
func TestLateOperationIsNotStarted(t *testing.T) {
	runTestbed(t, Config{MaxWorkers: 1}, func(b *testbed) {
		late := &fakeDelivery{late: errors.New("the deadline passed 58s ago")}
		b.Submit(vedette.Operation{ID: "late", Args: vedette.ScaleArgs{}}, late)
		synctest.Wait()
		b.wantEqual("sent", b.sent, "late failed 0")
		if out := b.Unacknowledged()[0]; out.Status != 504 || !strings.Contains(out.Message, "58s ago") || !strings.Contains(out.Message, "had no effect") {
			t.Errorf("got %d %s", out.Status, out.Message)
		}
		waiting := &fakeDelivery{}
		b.submit("first")
		b.Submit(vedette.Operation{ID: "waiting", Args: vedette.ScaleArgs{}}, waiting)
		synctest.Wait()
		waiting.set(errors.New("late"), nil)
		b.complete("first", vedette.Outcome{State: vedette.Done})
		synctest.Wait()
		b.wantEqual("started", b.started, "first")
	})
}

// TestInterruptedOperationsWaitBeforeChanging checks when an operation may send a request that changes something. The server may have given
// one that can be repeated to another agent, if its connection was interrupted.
func TestInterruptedOperationsWaitBeforeChanging(t *testing.T) {
	runTestbed(t, Config{}, func(b *testbed) {
		delivery := &fakeDelivery{}
		op := vedette.Operation{ID: "a", Args: vedette.ScaleArgs{}}
		b.Submit(op, delivery)
		synctest.Wait()
		control := b.controls["a"]
		result := make(chan error, 1)
		ask := func() {
			ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
			defer cancel()
			result <- control.MayChange(ctx)
		}
		want := func(what string, want error) {
			t.Helper()
			select {
			case err := <-result:
				if !errors.Is(err, want) {
					t.Errorf("%s: got %v, want %v", what, err, want)
				}
			default:
				t.Errorf("%s: still waiting", what)
			}
		}
		ask()
		want("connected", nil)

		delivery.set(nil, errors.New("quiet"))
		go ask()
		time.Sleep(10 * time.Second)
		delivery.set(nil, nil) // the next heartbeat has arrived
		time.Sleep(interruptionCheck + 1)
		want("connected again", nil)

		ended := &fakeDelivery{interrupted: errors.New("ended")}
		b.Submit(op, ended)
		go ask()
		time.Sleep(10 * time.Second)
		b.Submit(op, &fakeDelivery{}) // the server sends it again
		synctest.Wait()
		want("sent again", nil)

		b.Submit(op, ended)
		ask()
		want("never sent again", ended.interrupted)
		late := &fakeDelivery{late: errors.New("late"), interrupted: ended.interrupted}
		b.Submit(op, late)
		ask()
		want("late", late.late)
		b.wantEqual("started", b.started, "a")
		b.complete("a", vedette.Outcome{State: vedette.Done})
	})
	runTestbed(t, Config{}, func(b *testbed) {
		b.Submit(vedette.Operation{ID: "restart", Args: vedette.RestartArgs{}}, &fakeDelivery{interrupted: errors.New("ended")})
		synctest.Wait()
		if err := b.controls["restart"].MayChange(b.t.Context()); err != nil {
			t.Errorf("an operation that is never sent to another agent: got %v", err)
		}
		b.complete("restart", vedette.Outcome{State: vedette.Done})
	})
}

// TestManifestsAndOutcomesCountTowardMemory checks that manifests and outcomes count toward the memory of their account until they are
// gone.
func TestManifestsAndOutcomesCountTowardMemory(t *testing.T) {
	line := fair.NewSplit(fair.Config{}, fair.Config{Capacity: 10_000, Share: 5_000, Wait: time.Second}, 0)
	runTestbed(t, Config{Memory: line, MaxWorkers: 1}, func(b *testbed) {
		apply := func(id vedette.OperationID, account vedette.AccountName) {
			b.Submit(vedette.Operation{ID: id, Account: account, Args: vedette.ApplyArgs{Manifest: make([]byte, 3_000)}}, nil)
			synctest.Wait()
		}
		apply("a", "one")
		apply("b", "one") // more than the account's share, so it waits
		time.Sleep(2 * time.Second)
		synctest.Wait()
		b.wantEqual("sent", b.sent, "b failed 0")
		apply("c", "two")
		b.wantEqual("started", b.started, "a")
		b.complete("a", vedette.Outcome{State: vedette.Done, Objects: nil})
		synctest.Wait()
		b.complete("c", vedette.Outcome{State: vedette.Done})
		for _, id := range []vedette.OperationID{"a", "b", "c"} {
			b.Forget(id)
		}
		if used := line.Stats().Used; used != 0 {
			t.Errorf("got %d bytes in use after all outcomes were acknowledged, want 0", used)
		}
	})
}

// TestSmallOperationsFindMemory checks that accounts whose large operations hold all memory, and wait for more, delay
// only the large operations of others.
func TestSmallOperationsFindMemory(t *testing.T) {
	memory := fair.NewSplit(fair.Config{Capacity: 4_000, Share: 1_000}, fair.Config{Capacity: 10_000, Share: 6_000, Wait: time.Hour}, 1_000)
	runTestbed(t, Config{Memory: memory}, func(b *testbed) {
		apply := func(id vedette.OperationID, manifest int) {
			b.Submit(vedette.Operation{ID: id, Account: vedette.AccountName(id[:1]), Args: vedette.ApplyArgs{Manifest: make([]byte, manifest)}}, nil)
			synctest.Wait()
		}
		apply("a1", 5_000)
		apply("b1", 4_000)
		apply("b2", 2_000)
		b.wantEqual("started", b.started, "a1", "b1")
		apply("c1", 100)
		if err := b.controls["c1"].Memory.Grow(t.Context(), 500); err != nil {
			t.Errorf("got %v for a small operation", err)
		}
		b.wantEqual("started", b.started, "a1", "b1", "c1")
		apply("d1", 2_000) // others are before it
		b.wantEqual("started", b.started, "a1", "b1", "c1")
	})
}

// TestOperationsWaitForMemoryUntilTheirDeadline checks that a caller learns at the deadline that there was no
// memory for the operation, however long others need theirs.
func TestOperationsWaitForMemoryUntilTheirDeadline(t *testing.T) {
	line := fair.NewSplit(fair.Config{}, fair.Config{Capacity: 10_000, Wait: time.Hour}, 0)
	runTestbed(t, Config{Memory: line}, func(b *testbed) {
		submit := func(id vedette.OperationID) {
			b.Submit(vedette.Operation{ID: id, Deadline: time.Now().Add(5 * time.Second), Args: vedette.ApplyArgs{Manifest: make([]byte, 6_000)}}, nil)
			synctest.Wait()
		}
		submit("a")
		submit("b")
		time.Sleep(6 * time.Second)
		synctest.Wait()
		b.wantEqual("sent", b.sent, "b failed 0")
		b.complete("a", vedette.Outcome{State: vedette.Done})
		b.wantEqual("started", b.started, "a")
	})
}

// listReader reads a list that never ends.
type listReader struct{ closed *bool }

// Next implements vedette.ObjectReader.
func (listReader) Next() (json.RawMessage, error) { return json.RawMessage("{}"), nil }

// Failure implements vedette.ObjectReader.
func (listReader) Failure(error) vedette.Outcome { return vedette.Outcome{} }

// Close implements vedette.ObjectReader.
func (l listReader) Close() { *l.closed = true }

// TestListKeepsItsWorker checks that a list that is sent while it is read keeps its worker and memory until it is
// closed, also if its caller leaves before.
func TestListKeepsItsWorker(t *testing.T) {
	line := fair.NewSplit(fair.Config{}, fair.Config{Capacity: 10_000}, 0)
	runTestbed(t, Config{MaxWorkers: 1, Memory: line}, func(b *testbed) {
		for _, canceled := range []bool{false, true} {
			id := vedette.OperationID(fmt.Sprint("list", canceled))
			b.Submit(vedette.Operation{ID: id, Args: vedette.ListArgs{}}, nil)
			synctest.Wait()
			closed := false
			if canceled {
				b.Cancel(id)
				synctest.Wait()
				continue
			}
			out := vedette.Outcome{State: vedette.Done, More: listReader{&closed}}
			b.complete(id, out)
			b.Submit(vedette.Operation{ID: "next", Args: vedette.GetArgs{}}, nil)
			synctest.Wait()
			b.wantEqual("started", b.started, "listfalse")
			b.lastMore.Close()
			b.Forget(id)
			synctest.Wait()
			b.wantEqual("started", b.started, "listfalse", "next")
			if !closed {
				t.Error("the list was not closed")
			}
			b.complete("next", vedette.Outcome{State: vedette.Done, Stream: io.NopCloser(strings.NewReader(""))})
			b.Forget("next")
		}
		if used := line.Stats().Used; used != 0 {
			t.Errorf("got %d bytes in use, want 0", used)
		}
	})
}
