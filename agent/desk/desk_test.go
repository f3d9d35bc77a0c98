package desk

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

// bench is a desk whose operations end when they are told to.
type bench struct {
	*Desk
	t *testing.T

	mu       sync.Mutex
	begun    []string
	answered []string
	finish   map[vedette.OperationID]chan vedette.Outcome
}

func onBench(t *testing.T, cfg Config, test func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, finish: map[vedette.OperationID]chan vedette.Outcome{}}
		b.Desk = New(cfg, b.do, func(o vedette.Outcome) { b.note(&b.answered, fmt.Sprintf("%s %s %d", o.ID, o.State, len(o.Objects))) })
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

func (b *bench) note(list *[]string, line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*list = append(*list, line)
}

func (b *bench) do(ctx context.Context, op vedette.Operation) vedette.Outcome {
	end := make(chan vedette.Outcome, 1)
	b.mu.Lock()
	b.begun = append(b.begun, string(op.ID))
	b.finish[op.ID] = end
	b.mu.Unlock()
	select {
	case out := <-end:
		return out
	case <-ctx.Done():
		return vedette.Outcome{State: vedette.Failed, Message: "broken off"}
	}
}

func (b *bench) end(id vedette.OperationID, out vedette.Outcome) {
	b.mu.Lock()
	end := b.finish[id]
	b.mu.Unlock()
	end <- out
	synctest.Wait()
}

func (b *bench) put(ids ...vedette.OperationID) {
	for _, id := range ids {
		b.Put(vedette.Operation{ID: id, Args: vedette.ScaleArgs{}})
		synctest.Wait()
	}
}

func (b *bench) want(what string, got []string, want ...string) {
	b.t.Helper()
	if !slices.Equal(got, want) {
		b.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func (b *bench) unanswered() []string {
	var ids []string
	for _, o := range b.Unanswered() {
		ids = append(ids, string(o.ID))
	}
	return ids
}

func TestTwiceIsOnce(t *testing.T) {
	onBench(t, Config{}, func(b *bench) {
		b.put("a", "a")
		b.want("begun", b.begun, "a")
		b.end("a", vedette.Outcome{State: vedette.Done})
		b.put("a") // the acknowledgement was lost with its connection
		b.want("begun", b.begun, "a")
		b.want("answered", b.answered, "a done 0", "a done 0")
		b.want("unanswered", b.unanswered(), "a")
		b.Forget("a")
		b.want("unanswered", b.unanswered())
	})
}

func TestForgetWhileUnderWay(t *testing.T) {
	onBench(t, Config{}, func(b *bench) {
		b.put("a")
		b.Forget("a") // of an earlier life of the id; it must not be begun again
		b.put("a")
		b.want("begun", b.begun, "a")
		b.end("a", vedette.Outcome{State: vedette.Done})
	})
}

func TestCancel(t *testing.T) {
	onBench(t, Config{}, func(b *bench) {
		b.Put(vedette.Operation{ID: "read", Args: vedette.GetArgs{}})
		b.put("write")
		b.Cancel("read")
		b.Cancel("write")
		synctest.Wait()
		b.want("what is under way", []string{fmt.Sprint(b.Running())}, "1")
		b.end("write", vedette.Outcome{State: vedette.Done})
		b.want("unanswered", b.unanswered(), "write")
	})
}

// What does not fit loses its payload, the oldest first; what was read is
// forgotten, and what was written is not.
func TestBoundedMemory(t *testing.T) {
	onBench(t, Config{Bytes: 4000}, func(b *bench) {
		big := []json.RawMessage{json.RawMessage(strings.Repeat("x", 2500))}
		b.put("a", "b")
		b.Put(vedette.Operation{ID: "r", Args: vedette.ListArgs{}})
		synctest.Wait()
		b.end("a", vedette.Outcome{State: vedette.Done, Objects: big})
		b.end("r", vedette.Outcome{State: vedette.Done, Objects: big})
		b.end("b", vedette.Outcome{State: vedette.Done, Objects: big})
		remembered := func() (got []string) {
			for _, o := range b.Unanswered() {
				got = append(got, fmt.Sprintf("%s %d %d", o.ID, len(o.Objects), len(o.Warnings)))
			}
			return got
		}
		b.want("what is remembered", remembered(), "a 0 0", "b 1 0")
		b.put("c", "d")
		b.end("c", vedette.Outcome{State: vedette.Done, Warnings: []string{strings.Repeat("x", 2500)}})
		b.want("what is remembered", remembered(), "a 0 0", "b 0 0", "c 0 1")
		b.end("d", vedette.Outcome{State: vedette.Done, Objects: big})
		b.want("what is remembered", remembered(), "a 0 0", "b 0 0", "c 0 0", "d 1 0")
	})
}

func TestOldOutcomesGo(t *testing.T) {
	onBench(t, Config{Keep: time.Hour}, func(b *bench) {
		b.put("a")
		b.end("a", vedette.Outcome{State: vedette.Done})
		time.Sleep(59 * time.Minute)
		b.want("after 59 minutes", b.unanswered(), "a")
		time.Sleep(3 * time.Minute)
		b.want("after 62 minutes", b.unanswered())
	})
}

func TestWorkers(t *testing.T) {
	onBench(t, Config{Workers: 1}, func(b *bench) {
		b.put("a")
		b.Put(vedette.Operation{ID: "b", Args: vedette.ScaleArgs{}, Deadline: time.Now().Add(time.Second)})
		b.put("c")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		b.want("answered", b.answered, "b failed 0") // it never had a turn, and says so
		b.end("a", vedette.Outcome{State: vedette.Done})
		b.want("begun", b.begun, "a", "c")
		b.end("c", vedette.Outcome{State: vedette.Done})
	})
}

// A log is read once: it is not remembered, and its context lives until it is
// forgotten.
func TestStreams(t *testing.T) {
	onBench(t, Config{Streams: 1}, func(b *bench) {
		b.Put(vedette.Operation{ID: "log", Args: vedette.LogsArgs{}})
		synctest.Wait()
		b.end("log", vedette.Outcome{State: vedette.Done, Stream: io.NopCloser(strings.NewReader("text"))})
		b.want("unanswered", b.unanswered())
		b.Put(vedette.Operation{ID: "log", Args: vedette.LogsArgs{}})
		synctest.Wait()
		b.want("answered", b.answered, "log done 0")
		b.Put(vedette.Operation{ID: "other", Args: vedette.LogsArgs{}})
		synctest.Wait()
		b.end("other", vedette.Outcome{State: vedette.Done, Stream: io.NopCloser(strings.NewReader("text"))})
		b.want("answered", b.answered, "log done 0", "other failed 0")
		b.Forget("log")
		b.Put(vedette.Operation{ID: "log", Args: vedette.LogsArgs{}})
		synctest.Wait()
		b.want("begun", b.begun, "log", "other", "log")
	})
}
