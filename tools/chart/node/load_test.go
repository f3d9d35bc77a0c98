package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A load runs operations and reads without pause, and remembers what came of both.
type load struct {
	base      string                              // of the REST API
	path      string                              // that is read
	wrong     func(status int, body string) error // whether an answer is wrong; errors of the server are not answers
	account   string                              // of operations; none without it
	namespace string                              // of operations
	prefix    string                              // of the names of ConfigMaps, which are also the ids of requests
	refusals  []string                            // texts with which tasks may fail that have no effect
	pooled    bool                                // connections are used again, as Spinnaker's services do
	counter   string                              // a ServiceAccount to whose list each operation adds its name, so that repeated ones are seen; none without it

	mu         sync.Mutex
	operations map[string]bool // that the server accepted, by the name of their ConfigMap: whether they have succeeded
	problems   []string
	answers    int
	refused    []string  // operations that the server accepted, and said that they have no effect
	last       time.Time // of an answer
	longest    time.Duration
	unanswered map[string]int // requests, by status

	stop context.CancelFunc
	done sync.WaitGroup
}

// patience limits one request of a load. Clients of Spinnaker wait longer.
const patience = 10 * time.Second

// impatient does not wait long for connections: packets to a Pod that has just ended are lost, and the time without answers would be
// that of the client. Each request has a connection of its own, as Services choose a Pod for each connection.
var impatient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: time.Second}).DialContext}}

// pooling uses connections again. As clients of Spinnaker's services, it sends a request once more that was not answered on a connection that was
// open already.
var pooling = &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: time.Second}).DialContext}}

func startLoad(t *testing.T, l *load) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l.stop, l.operations = cancel, map[string]bool{}
	l.unanswered, l.last = map[string]int{}, time.Now()
	l.done.Go(func() {
		for ctx.Err() == nil {
			l.read(ctx)
			pause(ctx)
		}
	})
	if l.account != "" {
		l.done.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				l.operate(fmt.Sprintf("%s-%d", l.prefix, i))
			}
		})
	}
	t.Cleanup(cancel)
	return l
}

// pause keeps the machine free for others.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Millisecond):
	}
}

// end stops the load, and returns what it has seen.
func (l *load) end() *load {
	l.stop()
	l.done.Wait()
	return l
}

// request returns status 0 if there is no whole answer.
func (l *load) request(ctx context.Context, method, path, body string) (status int, answer string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, l.base+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Content-Type", "application/json")
	client := impatient
	if l.pooled {
		client = pooling
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(content)
}

func (l *load) read(ctx context.Context) {
	status, body := l.request(ctx, http.MethodGet, l.path, "")
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if status == 0 || status >= 500 {
		l.unanswered[fmt.Sprint(status)]++
		return
	}
	l.answers++
	l.longest = max(l.longest, time.Since(l.last))
	l.last = time.Now()
	if err := l.wrong(status, body); err != nil {
		l.problems = append(l.problems, fmt.Sprintf("GET %s: %d: %v: %.300s", l.path, status, err, body))
	}
}

// operation returns the body of a request that deploys a ConfigMap, and adds its name to the counter's list. JSON patches are not idempotent.
func (l *load) operation(name string) string {
	deploy := fmt.Sprintf(`{"deployManifest": {"account": %q, "moniker": {"app": "load"}, "manifests": [{"apiVersion": "v1", "kind": "ConfigMap",
"metadata": {"name": %q, "namespace": %q, "annotations": {"strategy.spinnaker.io/versioned": "false"}}, "data": {"name": %[2]q}}]}}`, l.account, name, l.namespace)
	if l.counter == "" {
		return "[" + deploy + "]"
	}
	return fmt.Sprintf(`[%s, {"patchManifest": {"account": %q, "manifestName": "serviceAccount %s", "location": %q, "source": "text",
"patchBody": [{"op": "add", "path": "/imagePullSecrets/-", "value": {"name": %q}}], "options": {"mergeStrategy": "json", "record": false}}}]`,
		deploy, l.account, l.counter, l.namespace, name)
}

// operate deploys a ConfigMap, and repeats what was not answered with the same id, as Orca does. It does not stop in the middle.
func (l *load) operate(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	operation := l.operation(name)
	var started struct{ ID string }
	for started.ID == "" {
		status, body := l.request(ctx, http.MethodPost, "/kubernetes/ops?clientRequestId="+name, operation)
		switch {
		case status == http.StatusOK:
			if err := json.Unmarshal([]byte(body), &started); err != nil || started.ID == "" {
				l.problem("POST %s: got %s (%v)", name, body, err)
				return
			}
		case status != 0 && status < 500:
			l.problem("POST %s: %d %s", name, status, body)
			return
		case ctx.Err() != nil:
			l.problem("POST %s: no answer in time, at last %d %s", name, status, body)
			return
		}
		pause(ctx)
	}
	l.mu.Lock()
	l.operations[name] = false
	l.mu.Unlock()
	for {
		status, body := l.request(ctx, http.MethodGet, "/task/"+started.ID, "")
		var task struct {
			Status struct {
				Completed, Failed bool
				Status            string
			}
		}
		switch {
		case status == http.StatusOK && json.Unmarshal([]byte(body), &task) == nil && task.Status.Completed:
			if task.Status.Failed && slices.ContainsFunc(l.refusals, func(text string) bool { return strings.Contains(body, text) }) {
				l.refuse(name)
				return
			}
			l.mu.Lock()
			l.operations[name] = !task.Status.Failed
			l.mu.Unlock()
			if task.Status.Failed {
				l.problem("task of %s: %s", name, body)
			}
			return
		case status != 0 && status != http.StatusOK && status < 500:
			l.problem("task of %s: %d %s", name, status, body)
			return
		case ctx.Err() != nil:
			l.problem("task of %s: has no end in time, at last %d %s", name, status, body)
			return
		}
		pause(ctx)
	}
}

// refuse notes that the server says of an operation that it has no effect.
func (l *load) refuse(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.operations, name)
	l.refused = append(l.refused, name)
}

func (l *load) problem(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// check fails the test for wrong answers, and for operations of which the cluster does not have the effect.
func (l *load) check(c *cluster) {
	c.t.Helper()
	for _, p := range slices.Compact(l.problems) {
		c.t.Error(p)
	}
	if l.account != "" {
		var list struct {
			Items []struct {
				Metadata struct{ Name string }
				Data     map[string]string
			}
		}
		c.get("/api/v1/namespaces/"+l.namespace+"/configmaps", &list)
		there := map[string]bool{}
		for _, o := range list.Items {
			there[o.Metadata.Name] = o.Data["name"] == o.Metadata.Name
		}
		for name := range l.operations {
			if !there[name] {
				c.t.Errorf("operation %s was accepted, and the cluster does not have its ConfigMap", name)
			}
		}
		for _, name := range l.refused {
			if there[name] {
				c.t.Errorf("operation %s has no effect, says the server, and the cluster has its ConfigMap", name)
			}
		}
		if len(l.operations) == 0 {
			c.t.Error("no operation was accepted")
		}
		l.checkCounter(c)
	}
	if l.answers == 0 {
		c.t.Error("no read was answered")
	}
	c.t.Logf("%d operations, and %d without effect; %d answers to reads, longest time without one %v; no answer: %v", len(l.operations), len(l.refused),
		l.answers, l.longest.Round(10*time.Millisecond), l.unanswered)
}

// checkCounter fails the test for operations that were executed twice, or not at all.
func (l *load) checkCounter(c *cluster) {
	c.t.Helper()
	if l.counter == "" {
		return
	}
	var account struct{ ImagePullSecrets []struct{ Name string } }
	c.get("/api/v1/namespaces/"+l.namespace+"/serviceaccounts/"+l.counter, &account)
	executed := map[string]int{}
	for _, s := range account.ImagePullSecrets {
		executed[s.Name]++
	}
	for name := range l.operations {
		if executed[name] != 1 {
			c.t.Errorf("operation %s was executed %d times", name, executed[name])
		}
	}
}
