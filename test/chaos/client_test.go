package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/vedette-io/vedette/test/chaos/history"
	"github.com/vedette-io/vedette/test/sharing"
)

// load is the clients of a round and what they were told.
type load struct {
	w         *world
	namespace string
	began     time.Time
	targets   []target
	counter   atomic.Int64 // for values, which are unique

	mu         sync.Mutex
	operations []history.Operation
	ids        []acceptedOperation
	problems   []string
	counts     map[string]int
}

// target is an object that clients read and write.
type target struct {
	account    int
	kind, name string
}

func (t target) object() string { return objectName(accountName(t.account), t.name) }

// acceptedOperation is an operation with an id, whose end the history of the servers has.
type acceptedOperation struct {
	id      string
	op      history.Operation // of unknown outcome
	creates bool              // an object whose name the API server chooses
}

const (
	clientsPerAccount = 5
	mapsPerAccount    = 2
	operationTimeout  = 5 * time.Second
	answerTime        = 3 * time.Second  // how long a client waits for an answer before it asks another server
	repeatFor         = 15 * time.Second // how long a client repeats a request that is not answered
	pollFor           = 20 * time.Second // how long a client waits for the end of a task
)

func (w *world) newLoad(namespace string) *load {
	l := &load{w: w, namespace: namespace, began: time.Now(), counts: map[string]int{}}
	for account := range w.planes {
		for i := range mapsPerAccount {
			l.targets = append(l.targets, target{account, "configmap", fmt.Sprint("map-", i)})
		}
		l.targets = append(l.targets, target{account, "deployment", "web"})
	}
	return l
}

// run lets all clients work until ctx ends, and returns when none waits for an answer any more.
func (l *load) run(ctx context.Context, rng *rand.Rand) {
	var clients sync.WaitGroup
	for n := range clientsPerAccount * len(l.w.planes) {
		c := &client{load: l, number: n, account: n / clientsPerAccount, rng: rand.New(rand.NewPCG(rng.Uint64(), uint64(n)))}
		clients.Go(func() {
			for ctx.Err() == nil {
				c.step(l.w.t.Context())
				sleep(ctx, time.Duration(10+c.rng.IntN(40))*time.Millisecond)
			}
		})
	}
	clients.Wait()
}

// client sends one request after the other, each to a server at random.
type client struct {
	*load
	number  int
	account int
	rng     *rand.Rand
}

func (c *client) server() *server { return c.w.servers[c.rng.IntN(len(c.w.servers))] }

// since returns the time since the load began.
func (l *load) since() time.Duration { return time.Since(l.began) }

// step does one operation on one object of the account.
func (c *client) step(ctx context.Context) {
	perAccount := mapsPerAccount + 1
	t := c.targets[c.account*perAccount+c.rng.IntN(perAccount)]
	o := history.Operation{Client: c.number, Object: t.object(), Call: c.since()}
	switch n := c.rng.IntN(100); {
	case n < 30:
		o.Verb = history.Read
		c.readObject(ctx, t, &o)
	case n < 55:
		o.Verb = history.Read
		c.readManifest(ctx, t, &o)
	case n < 70:
		o.Verb, o.Value = history.Write, c.newValue(t)
		c.operate(ctx, t, &o, object{"verb": "apply", "manifest": c.manifest(t, o.Value)})
	case n < 82:
		o.Verb, o.Value = history.Write, c.newValue(t)
		c.submit(ctx, &o, "deployManifest", object{"account": accountName(t.account), "moniker": object{"app": t.name}, "manifests": []any{c.manifest(t, o.Value)}})
	case n < 90 && t.kind == "deployment":
		o.Verb, o.Value = history.Write, c.newValue(t)
		replicas, _ := strconv.Atoi(o.Value) // newValue has made it
		if n < 86 {
			c.operate(ctx, t, &o, object{"verb": "scale", "kind": t.kind, "namespace": c.namespace, "name": t.name, "replicas": replicas})
		} else {
			c.submit(ctx, &o, "scaleManifest", object{"account": accountName(t.account), "location": c.namespace, "manifestName": t.kind + " " + t.name, "replicas": replicas})
		}
	case n < 94:
		c.create(ctx, t)
		return
	case n < 97:
		o.Verb = history.Delete
		c.operate(ctx, t, &o, object{"verb": "delete", "kind": t.kind, "namespace": c.namespace, "name": t.name})
	default:
		o.Verb = history.Delete
		c.submit(ctx, &o, "deleteManifest", object{"account": accountName(t.account), "location": c.namespace, "manifestName": t.kind + " " + t.name})
	}
	c.record(o)
}

func (l *load) record(o history.Operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.operations = append(l.operations, o)
	l.counts[string(o.Verb)+" "+string(o.Outcome)]++
}

func (l *load) problem(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// newValue returns a value that no other operation writes: a text, or a number of replicas, which nobody makes.
func (l *load) newValue(t target) string {
	n := l.counter.Add(1)
	if t.kind == "deployment" {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprint("v", n)
}

func (l *load) manifest(t target, value string) object {
	metadata := object{"name": t.name, "namespace": l.namespace, "annotations": object{"strategy.spinnaker.io/versioned": "false"}}
	if t.kind == "configmap" {
		return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": object{"value": value}}
	}
	replicas, _ := strconv.Atoi(value) // newValue has made it
	labels := object{"app": t.name}
	return object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": object{"replicas": replicas, "selector": object{"matchLabels": labels},
		"template": object{"metadata": object{"labels": labels}, "spec": object{"containers": []any{object{"name": "c", "image": "i"}}}}}}
}

// readObject reads an object from a server's own API.
func (c *client) readObject(ctx context.Context, t target, o *history.Operation) {
	c.read(ctx, t, o, fmt.Sprintf("/vedette/v1/objects/%s/%ss/%s/%s", accountName(t.account), t.kind, c.namespace, t.name))
}

// readManifest reads an object as Orca does.
func (c *client) readManifest(ctx context.Context, t target, o *history.Operation) {
	c.read(ctx, t, o, fmt.Sprintf("/manifests/%s/%s/%s?includeEvents=false", accountName(t.account), c.namespace, url.PathEscape(t.kind+" "+t.name)))
}

// read reads an object. An answer that says that it is stale proves nothing.
func (c *client) read(ctx context.Context, t target, o *history.Operation, path string) {
	s := c.server()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer, err := s.Do(ctx, http.MethodGet, path, nil)
	o.Return, o.Outcome = c.since(), history.Unknown
	o.Detail = fmt.Sprintf("at %s by %.12s", s.Name, path)
	switch {
	case err != nil:
		return
	case answer.Header.Get("Vedette-Stale") == "true":
		o.Detail += ", stale"
	case answer.Status == http.StatusOK:
		var view struct{ Manifest watchedObject }
		if err := json.Unmarshal(answer.Body, &view); err != nil {
			c.problem("%s answers what is not JSON: %v in %.300s", path, err, answer.Body)
			return
		}
		o.Value, o.Outcome = view.Manifest.value(t.kind), history.Done
	case answer.Status == http.StatusNotFound && strings.Contains(string(answer.Body), t.name):
		o.Value, o.Outcome = history.Absent, history.Done
	}
}

// outcome is the answer to an operation.
type outcome struct {
	State, Reason, Message string
	Status                 int
	Error                  struct{ Kind, Message string }
}

// operate sends an operation with an id, again and again until it is answered.
func (c *client) operate(ctx context.Context, t target, o *history.Operation, body object) {
	id := ulid.Make().String()
	o.ID = id
	o.Outcome = c.send(ctx, t, id, o, body)
	if o.Outcome == history.Unknown {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ids = append(c.ids, acceptedOperation{id: id, op: *o})
	}
}

// send returns what is known when an operation is answered, or when the client gives up. A request that is answered with an error was not
// accepted, and one that is not answered at all may have been.
func (c *client) send(ctx context.Context, t target, id string, o *history.Operation, body object) history.Outcome {
	body["account"], body["id"], body["timeout"] = accountName(t.account), id, operationTimeout.String()
	mayHaveBegun := false
	for deadline := time.Now().Add(repeatFor); time.Now().Before(deadline); sleep(ctx, 100*time.Millisecond) {
		s := c.server()
		answer, err := within(ctx, operationTimeout+answerTime, func(ctx context.Context) (sharing.Answer, error) {
			return s.Do(ctx, http.MethodPost, "/vedette/v1/operations", body)
		})
		o.Return = c.since()
		o.Latest = o.Return + operationTimeout // counted from its acceptance, which was before
		var out outcome
		if err == nil {
			err = json.Unmarshal(answer.Body, &out)
		}
		o.Detail = fmt.Sprintf("at %s: %s %d %.200s%.200s", s.Name, out.State, answer.Status, out.Message, out.Error.Message)
		switch {
		case err != nil, answer.Status == http.StatusConflict && out.State == "":
			mayHaveBegun = true // 409 means that another server executes it
		case out.State == "done":
			return history.Done
		case o.Verb == history.Delete && out.State == "failed" && out.Status == http.StatusNotFound && out.Reason == "NotFound":
			o.Detail += nothingToDelete
			return history.Done
		case out.State == "failed" && !strings.Contains(out.Message, "is being deleted"):
			return history.Failed
		case out.State != "":
			return history.Unknown
		}
	}
	if mayHaveBegun {
		return history.Unknown
	}
	return history.Failed
}

// create creates an object of a new name.
func (c *client) create(ctx context.Context, t target) {
	id := ulid.Make().String()
	o := history.Operation{Client: c.number, Object: t.object(), Verb: history.Write, Value: id, Call: c.since()}
	o.Outcome = c.send(ctx, t, id, &o, object{"verb": "apply", "strategy": "create", "manifest": object{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{"generateName": "made-", "namespace": c.namespace, "labels": object{creatorLabel: id}}, "data": object{"value": id}}})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = append(c.ids, acceptedOperation{id, o, true})
	c.counts["create "+string(o.Outcome)]++
}

// submit submits a task as Orca does: again with the same clientRequestId if it is not answered, and polls it at any server.
func (c *client) submit(ctx context.Context, o *history.Operation, name string, description object) {
	o.Outcome = history.Unknown
	requestID := ulid.Make().String()
	var ref struct{ ID string }
	for deadline := time.Now().Add(repeatFor); ref.ID == "" && time.Now().Before(deadline); sleep(ctx, 100*time.Millisecond) {
		answer, err := within(ctx, answerTime, func(ctx context.Context) (sharing.Answer, error) {
			return c.server().Do(ctx, http.MethodPost, "/kubernetes/ops?clientRequestId="+requestID, []any{object{name: description}})
		})
		if err == nil && answer.Status == http.StatusOK {
			_ = json.Unmarshal(answer.Body, &ref) // otherwise it is repeated
		}
	}
	if ref.ID == "" {
		return
	}
	o.ID = "task " + ref.ID
	for deadline := time.Now().Add(pollFor); time.Now().Before(deadline); sleep(ctx, 50*time.Millisecond) {
		s := c.server()
		var task struct {
			Status struct {
				Completed, Failed bool
				Status            string
			}
			ResultObjects []struct {
				ManifestNamesByNamespace map[string][]string
			}
		}
		answer, err := within(ctx, answerTime, func(ctx context.Context) (sharing.Answer, error) {
			return s.Do(ctx, http.MethodGet, "/task/"+ref.ID, nil)
		})
		if err == nil && answer.Status == http.StatusNotFound {
			c.problem("task %s was accepted, and %s answers: %.300s", ref.ID, s.Name, answer.Body)
			return
		}
		if err != nil || answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &task) != nil || !task.Status.Completed {
			continue
		}
		o.Return = c.since()
		o.Detail = fmt.Sprintf("at %s: %.200s", s.Name, task.Status.Status)
		if task.Status.Failed {
			return
		}
		o.Outcome = history.Done
		if o.Verb == history.Delete && len(task.ResultObjects) > 0 && len(task.ResultObjects[0].ManifestNamesByNamespace[c.namespace]) == 0 {
			o.Detail += nothingToDelete
		}
		return
	}
}

// nothingToDelete says that a deletion found no object. That is as good as a deletion: whoever reads next must not see the object, although it may be
// another operation that has deleted it and is not answered yet.
const nothingToDelete = " (there was nothing to delete)"

// within asks with a limit of time.
func within(ctx context.Context, d time.Duration, ask func(ctx context.Context) (sharing.Answer, error)) (sharing.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return ask(ctx)
}
