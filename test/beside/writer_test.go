package beside

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// operation is one operation of a writer, with what the writer was told about it.
type operation struct {
	id, account, step string
	task              string
	isOwn             bool // the server has the task
	attempts          int
	isDone, isFailed  bool
	isGivenUp         bool   // the test did not wait for its end
	reason            string // why it failed
}

func (o operation) String() string {
	return fmt.Sprintf("operation %s in account %s, sent %s in step %q, task %q", o.id, o.account, times(o.attempts), o.step, o.task)
}

// writersPerAccount let operations begin while the end of another one is unknown: that of a task whose server was killed is known
// after up to a minute.
const writersPerAccount = 2

// writer sends operations to both accounts, a few at a time for each, and keeps a log.
type writer struct {
	*readers
	ctx    context.Context    // ends when no operation is awaited any longer
	giveUp context.CancelFunc // ends ctx
	last   context.CancelFunc // no operations begin after it
	ended  chan struct{}      // closed when the last operation has ended

	mu  sync.Mutex
	log []operation
}

func startWriter(ctx context.Context, r *readers) *writer {
	w := &writer{readers: r, ended: make(chan struct{})}
	w.ctx, w.giveUp = context.WithCancel(ctx)
	writing, last := context.WithCancel(w.ctx)
	w.last = last
	var group sync.WaitGroup
	for i := range 2 * writersPerAccount {
		group.Go(func() { w.run(writing, accountOf(i)) })
	}
	go func() { group.Wait(); close(w.ended) }()
	return w
}

// finish lets no more operations begin, and waits until those that run have ended, or until the timeout.
func (w *writer) finish(timeout time.Duration) {
	w.last()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-w.ended:
	case <-timer.C:
	}
}

// stop is like finish, and gives up operations that run at the timeout.
func (w *writer) stop(timeout time.Duration) {
	w.finish(timeout)
	w.giveUp()
	<-w.ended
}

// run sends operations to an account until ctx ends.
func (w *writer) run(ctx context.Context, account string) {
	for sleep(ctx, 500*time.Millisecond) {
		o := operation{id: ulid.Make().String(), account: account, step: w.step()}
		w.submit(w.ctx, &o)
		w.await(w.ctx, &o)
		o.isGivenUp = w.ctx.Err() != nil
		w.mu.Lock()
		w.log = append(w.log, o)
		w.mu.Unlock()
	}
}

// body returns an operation that creates a ConfigMap, which is a new one each time.
func (o operation) body() string {
	manifest := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"generateName": "op-", "namespace": namespace,
		"labels": object{operationLabel: o.id}, "annotations": object{"strategy.spinnaker.io/versioned": "false"}}, "data": object{"id": o.id}}
	raw, err := json.Marshal([]object{{"deployManifest": object{"account": o.account, "cloudProvider": "kubernetes", "source": "text", "manifests": []object{manifest},
		"moniker": object{"app": applicationName(0)}, "enableTraffic": true, "requiredArtifacts": []object{}, "optionalArtifacts": []object{}}}})
	if err != nil {
		panic(err) // cannot happen: texts can be encoded
	}
	return string(raw)
}

// submit sends an operation until the server says which task it became. It repeats it with the same clientRequestId,
// as Orca does.
func (w *writer) submit(ctx context.Context, o *operation) {
	const name = "writer"
	for ctx.Err() == nil {
		o.attempts++
		step := w.step()
		a := send(ctx, http.MethodPost, w.url+"/kubernetes/ops?clientRequestId="+o.id, strings.NewReader(o.body()))
		if ctx.Err() != nil {
			return
		}
		w.times.add(w.step(), name+" to "+o.account, a.began, a.ended, a.err != nil || a.status != http.StatusOK)
		if a.err == nil && a.status == http.StatusOK {
			var ref struct{ ID string }
			if err := json.Unmarshal(a.body, &ref); err != nil || ref.ID == "" {
				w.violations.add(step, name, "an operation is accepted without a task", o.String()+": "+a.String())
				return
			}
			// A request that is repeated goes where the first try went.
			o.task, o.isOwn = ref.ID, o.attempts == 1 && w.isAgents(request{account: o.account}, a)
			return
		}
		if kind := w.judgeError(request{account: o.account}, a); kind != "" {
			w.violations.add(step, name, "POST /kubernetes/ops "+kind, o.String()+": "+a.String())
		}
		sleep(ctx, 200*time.Millisecond)
	}
}

// await polls the task until it has ended.
func (w *writer) await(ctx context.Context, o *operation) {
	for o.task != "" && ctx.Err() == nil {
		step := w.step()
		a := send(ctx, http.MethodGet, w.url+"/task/"+o.task, nil)
		if ctx.Err() != nil {
			return
		}
		var task taskView
		switch {
		case a.err != nil || a.status != http.StatusOK:
			if kind := w.judgeError(request{path: "/task/" + o.task, isOwn: o.isOwn}, a); kind != "" {
				w.violations.add(step, "writer", "GET /task/ID "+kind, o.String()+": "+a.String())
			}
			if a.status == http.StatusNotFound {
				return // Orca fails the stage
			}
		case json.Unmarshal(a.body, &task) != nil:
			w.violations.add(step, "writer", "GET /task/ID is not a task", o.String()+": "+a.String())
			return
		case task.Status.Completed:
			o.isDone, o.isFailed = true, task.Status.Failed
			if o.isFailed {
				o.reason = task.reason()
			}
			return
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

// reason returns why a task failed, as Orca shows it.
func (t taskView) reason() string {
	for _, raw := range t.ResultObjects {
		var result struct{ Type, Message, Cause string }
		if json.Unmarshal(raw, &result) == nil && result.Message+result.Cause != "" {
			return cmp.Or(result.Message, result.Cause)
		}
	}
	return ""
}

// succeeded returns the task of one of the operations that succeeded.
func (w *writer) succeeded(n int) (task string, isOwn bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.log) == 0 {
		return "", false
	}
	o := w.log[n%len(w.log)]
	if !o.isDone || o.isFailed {
		return "", false
	}
	return o.task, o.isOwn
}

// judge compares what the writer was told with what was run; runs has the numbers by account and clientRequestId.
// It returns how many operations there were, and how many of them failed. An upstream Clouddriver that may run a repeated request twice
// is one whose own tasks look for an earlier one before they begin, both at the same time.
func (w *writer) judge(runs map[string]map[string]int, mayRunTwice func(task string) bool) (all, failed int, reasons map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	reasons = map[string]int{}
	for _, o := range w.log {
		n := runs[o.account][o.id]
		violate := func(kind string) {
			w.violations.add(o.step, "writer", kind, fmt.Sprintf("%v: it ran %s; failed: %v %s", o, times(n), o.isFailed, o.reason))
		}
		switch {
		case n > 1 && o.attempts > 1 && mayRunTwice(o.task):
		case n > 1:
			violate("an operation ran more than once")
		case o.isDone && !o.isFailed && n == 0:
			violate("an operation is lost: its task succeeded, and nobody ran it")
		case o.isFailed && o.reason == "":
			violate("an operation failed without a reason")
		case !o.isDone && !o.isGivenUp && o.task != "":
			violate("an operation has no end")
		}
		all++
		if o.isFailed {
			failed++
			reasons[o.reason]++
		}
	}
	return all, failed, reasons
}
